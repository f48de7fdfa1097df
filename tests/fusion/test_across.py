"""Reductions along different loops of one nest: one kernel, the right values, and what must not join it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from bench.fusion.count import schedules_of
from bench.fusion.program import Program, tensor
from compiler.codegen.triton.render import plan_tile, render_plan
from compiler.compile import Generated, build
from compiler.decisions import Refuse
from compiler.devices import device_for
from compiler.ir.size import known
from compiler.runtime.checking.verify import relative_error
from compiler.runtime.interpreter.interpreter import interpret
from compiler.schedule.cost.kernel import work_and_shape
from compiler.schedule.tiles.plan import Parts, PersistentPlan, SplitPlan
from tests.compile_program import bytes_moved, call_interpreted, compile_program, kernel_count, known_sizes

aten = torch.ops.aten
Tensor = torch.Tensor


def layer_norm_backward(x: Tensor, g: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    """All three gradients from the definition, for rows of x."""
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    scale = torch.rsqrt(var + 1e-5)
    normal, weighted = (x - mean) * scale, g * w
    inner = weighted - weighted.mean(-1, keepdim=True) - normal * (weighted * normal).mean(-1, keepdim=True)
    return inner * scale, (g * normal).sum(0), g.sum(0)


def step_of_layer(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Of one with one result, whose new weight and new bias come of sums of what its old weight was multiplied by."""
    error = (x * w).sum(1, keepdim=True) + b
    return w - 0.1 * (error * x).mean(0), b - 0.1 * error.mean()


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def words(rows: int, columns: int) -> Tensor:
    return torch.randint(0, columns, (rows,), generator=torch.Generator().manual_seed(rows))


CASES = [
    Case("rows in a block of several", lambda x: (x.sum(0), x.exp().sum(1)), (rnd(3001, 20),)),
    Case("largest and smallest", lambda x: (x.amax(0), x.amin(1)), (rnd(300, 130),)),
    Case("truths", lambda x: ((x > 2).any(0), (x > -2).all(1), (x > -3).all(0)), (rnd(300, 130),)),
    Case("products of whole numbers", lambda i: ((i % 3 + 1).prod(0), i.sum(1)), (torch.arange(20 * 33).view(20, 33),)),
    Case("ends of their own", lambda x, w: (x.mean(0) * w, x.mean(1).sqrt(), x.sum(0) + 1),
         (rnd(96, 70).abs(), rnd(70))),
    Case("slices of long rows", lambda x: (x.sum(0).exp(), x.amax(1) * 2, x.sum(1), x * 3), (rnd(37, 4100),)),
    Case("three loops", lambda x: (x.sum((0, 1)), x.sum(2)), (rnd(12, 30, 40),)),
    Case("the gradients of a layer norm", layer_norm_backward, (rnd(300, 70) * 2, rnd(300, 70), rnd(70))),
    Case("the mean of what rows give", lambda x: torch.logsumexp(x, -1).mean(), (rnd(300, 130),)),
    Case("cross entropy", lambda x, i: F.cross_entropy(x, i), (rnd(300, 130), words(300, 130))),
    Case("cross entropy of long rows", lambda x, i: F.cross_entropy(x, i), (rnd(40, 9000), words(40, 9000))),
    Case("cross entropy of channels in the middle", lambda x, i: F.cross_entropy(x, i),
         (rnd(5, 9, 700), words(3500, 9).view(5, 700))),
    Case("the mean of what columns give", lambda x: torch.logsumexp(x, 0).mean(), (rnd(21, 3003),)),
    Case("sums of what channels share", lambda x: torch.softmax(x, 1).sum((0, 2)), (rnd(5, 9, 700),)),
    Case("a sum of all with an upper end", lambda x: (x.amax(1), x.sum().clamp(-2, 2), x.amax(0)), (rnd(300, 130),)),
    Case("rows, columns and all", lambda x: (x.amax(1), x.amax(0), x.amax()), (rnd(300, 130),)),
    Case("the sum of all that rows make", lambda x: (torch.softmax(x, -1), (torch.softmax(x, -1) * x).sum()),
         (rnd(300, 130),)),
    Case("rows that several programs share, and their mean",
         lambda x: ((x.sigmoid().sum(1) + 1).log().mean(), x.sigmoid().sum(1), x.exp().mean()), (rnd(3, 40001),)),
    Case("variances of rows that several programs share", lambda x: x.var(1).mean(), (rnd(5, 40001),)),
    Case("columns that several programs share, and their mean", lambda x: (x.square().sum(0) + 1).log().mean(),
         (rnd(9000, 70),)),
    Case("a value of no loop, for columns and for rows",
         lambda x: (torch.zeros(()) * 0.0 + x.argmax(0), torch.zeros(()) * 0.0 + x.square().sum(1)), (rnd(40, 8),)),
    Case("a step of weights that the rows read too", step_of_layer, (rnd(300, 130), rnd(130), rnd(1))),
    Case("a value of a row, once for each element", lambda x: (x.amax(1), (x.amax(1)[:, None] + 0 * x).mean()),
         (rnd(300, 130),)),
]  # fmt: skip


def as_list(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


def in_double(inputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [x.double() if x.is_floating_point() else x for x in inputs]


def is_as_good_as_eager(case: Case, results: list[Any]) -> bool:
    exact, eager = as_list(case.function(*in_double(case.inputs))), as_list(case.function(*case.inputs))
    return relative_error(results, exact) <= 3 * relative_error(eager, exact) + 8 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_kernel_reads_everything_once(case: Case) -> None:
    compilation = compile_program(case.function, *case.inputs)
    assert kernel_count(compilation) == (1, 0)
    assert compilation.groups[0].across
    outputs = sum(x.numel() * x.element_size() for x in as_list(case.function(*case.inputs)))
    assert bytes_moved(compilation) <= sum(x.numel() * x.element_size() for x in case.inputs) + outputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_are_as_good_as_eager(case: Case) -> None:
    compilation = compile_program(case.function, *case.inputs)
    assert is_as_good_as_eager(case, build(compilation).executable.call(list(case.inputs)))
    assert is_as_good_as_eager(case, call_interpreted(compilation, case.inputs))


@pytest.mark.parametrize("team_size", [0, 2, 4])
def test_parts_are_joined_in_teams_or_at_once(team_size: int) -> None:
    x = rnd(90, 37)
    compilation = compile_program(lambda x: (x.sum(0), x.amax(1), x.amax(1).sum()), x)
    (group,) = compilation.groups
    plan = _plan_of(compilation)
    assert isinstance(plan, PersistentPlan)
    axes = (replace(plan.axes[0], block=4, is_scalar=False), plan.axes[1])
    plan = replace(plan, parts=Parts(12, 8, team_size), axes=axes)
    kernel = render_plan(plan)
    outputs = {name: torch.empty(known_sizes(compilation.loops.buffers[name].shape)) for name in group.stored}
    interpret(kernel, [outputs.get(name, x) for name in kernel.parameters])
    made = sorted(float(one.sum()) for one in outputs.values())
    wanted = sorted(float(one.sum()) for one in (x.sum(0), x.amax(1), x.amax(1).sum()))
    assert made == pytest.approx(wanted, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(
    "function, inputs",
    [
        (lambda x: ((x.sigmoid().sum(1) + 1).log().mean(), x.exp().mean()), (torch.empty(64, 262144),)),
        (lambda x: x.var(1).mean(), (torch.empty(100, 100_000),)),
        (lambda x: (x.square().sum(0) + 1).log().mean(), (torch.empty(65536, 256),)),
    ],
)
def test_few_long_rows_keep_the_device_busy_and_are_predicted_so(
    function: Callable[..., Any], inputs: tuple[Tensor, ...]
) -> None:
    """A program for each row, as where rows are many, would leave most of the device idle."""
    compilation = compile_program(function, *inputs)
    assert kernel_count(compilation) == (1, 0)
    plan, device = _plan_of(compilation), device_for("sm_90")
    assert isinstance(plan, SplitPlan) and known(plan.grid) >= 2 * device.multiprocessors
    (group,) = compilation.groups
    layouts = compilation.loops.buffers
    _, shape = work_and_shape(group, layouts, device)
    assert shape.programs == known(plan.grid) and shape.is_split and shape.joins_rows


def _plan_of(compilation: Generated) -> Any:
    storage = compilation.loops.dtypes
    return plan_tile(compilation.groups[0], storage, device_for("sm_90"))


def refusals(function: Callable[..., Any], *inputs: Tensor) -> set[str]:
    compilation = compile_program(function, *inputs)
    return {d.verdict.reason for d in compilation.schedule.decisions}


def test_a_row_cannot_use_what_is_gathered_from_all_rows() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        columns = x.sum(0)
        return x.sum(1), (x - columns).amax(1)

    assert "dependency.across" in refusals(function, rnd(300, 130))
    x = rnd(300, 130)
    results = build(compile_program(function, x)).executable.call([x])
    torch.testing.assert_close(results, list(function(x)), rtol=1e-5, atol=1e-4)


def test_a_second_reduction_across_rows_needs_the_first_to_be_done() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amax(1), (x - x.mean(0)).square().sum(0)

    x = rnd(300, 130)
    results = build(compile_program(function, x)).executable.call([x])
    torch.testing.assert_close(results, list(function(x)), rtol=1e-5, atol=1e-4)


def test_a_row_that_does_not_fit_into_registers_is_refused_with_the_numbers() -> None:
    (compilation,) = schedules_of(Program("large", lambda x: (x.sum(0), x.sum(1)), (tensor("10000 9000"),)))
    refused = [d.verdict for d in compilation.schedule.decisions if d.verdict.reason == "profit.registers"]
    assert isinstance(refused[0], Refuse) and refused[0].numbers["row"] == 9000


def test_positions_are_not_gathered_across_rows() -> None:
    assert "shape.reduction_axes" in refusals(lambda x: (x.argmax(0), x.argmax(1)), rnd(30, 40))


def test_a_knob_turns_it_off() -> None:
    compilation = compile_program(lambda x: (x.sum(0), x.sum(1)), rnd(300, 130), disable=("across", "batch"))
    assert kernel_count(compilation) == (2, 0)
