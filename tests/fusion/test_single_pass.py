"""Sums that are relative to another reduction of the row, in the same pass: values, special values, what is read."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch

from compiler.codegen.triton.render import plan_tile, render_plan
from compiler.compile import Generated, build
from compiler.devices import device_for
from compiler.runtime.checking.verify import relative_error
from compiler.runtime.interpreter.interpreter import interpret
from compiler.schedule.rules import Fuse
from compiler.schedule.tiles.plan import SplitPlan
from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus, known_sizes

Tensor = torch.Tensor


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def squares_about_another(x: Tensor) -> tuple[Tensor, Tensor]:
    """Not relative to the mean, but to a number that depends on another reduction."""
    return x.amax(-1), (x - x.amax(-1, keepdim=True) / 2).square().sum(-1)


def exponentials_about_another(x: Tensor) -> tuple[Tensor, Tensor]:
    middle = x.mean(-1, keepdim=True)
    return middle, torch.exp(x - middle).sum(-1)


def chances(x: Tensor) -> tuple[Tensor, Tensor]:
    largest = x.amax(-1, keepdim=True)
    return largest, torch.exp(x - largest).sum(-1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "parts of a softmax": chances,
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "of what is computed": lambda x: torch.logsumexp(x.sin() * 3, -1),
    "variance and mean": lambda x: torch.var_mean(x, -1),
    "variance by hand": lambda x: (x - x.mean(-1, keepdim=True)).pow(2).mean(-1),
    "squares about half the largest": squares_about_another,
    "exponentials about the mean": exponentials_about_another,
    "both": lambda x: (torch.logsumexp(x, -1), x.var(-1)),
}
#: Rows of several blocks that end within one, whole blocks, and rows down the columns.
INPUTS = {
    "a part of a block": rnd(2, 17001),
    "whole blocks": rnd(2, 20480) * 3,
    "far from zero": rnd(2, 17001) + 1000,
    "far from the first ones": rnd(2, 17001) + 1000 * (torch.arange(17001) >= 1024),
    "float64": rnd(2, 17001).double() + 1000,
    "bfloat16": rnd(2, 17001).bfloat16(),
    "columns": rnd(3001, 17).t(),
}


def as_list(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


def single_kernel(function: Callable[..., Any], *inputs: Tensor) -> Generated:
    compilation = compile_program(function, *inputs)
    (group,) = compilation.groups
    assert group.single_pass
    return compilation


def looped(compilation: Generated, inputs: list[Tensor]) -> list[Tensor]:
    """The results where one program takes a whole row."""
    (group,) = compilation.groups
    layouts = compilation.loops.buffers
    plan = plan_tile(group, {name: layout.dtype for name, layout in layouts.items()}, device_for("sm_90"))
    kernel = render_plan(plan.alone if isinstance(plan, SplitPlan) else plan)
    made: dict[str, Tensor] = {}
    for name in group.stored:
        shape, stride = known_sizes(layouts[name].shape), known_sizes(layouts[name].stride)
        made[name] = torch.empty_strided(shape, stride, dtype=layouts[name].dtype)
    interpret(kernel, [made[name] if name in made else inputs[0] for name in kernel.parameters])
    return [made[output.buffer].reshape(-1) for output in compilation.loops.outputs if output.buffer in made]


def bound(eager: list[Tensor], exact: list[Tensor], x: Tensor) -> float:
    """What a result may be off by: a few times eager's error, and some roundings of a number of the size of x."""
    eps = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps
    return 3 * relative_error(eager, exact) + eps * (32 + float(x.double().abs().mean()))


@pytest.mark.parametrize(
    ("name", "given"), [*((name, "a part of a block") for name in FUNCTIONS), *(("both", given) for given in INPUTS)]
)
def test_results_are_as_good_as_those_of_two_passes(name: str, given: str) -> None:
    function, x = FUNCTIONS[name], INPUTS[given]
    exact, eager = as_list(function(x.double())), as_list(function(x))
    compilation = single_kernel(function, x)
    assert relative_error(call_interpreted(compilation, [x]), exact) <= bound(eager, exact, x)
    assert relative_error(build(compilation).executable.call([x]), exact) <= bound(eager, exact, x)


LARGEST = torch.finfo(torch.float32).max
SPECIAL: dict[str, list[float]] = {
    "nothing but minus infinity": [-inf] * 5,
    "minus infinity and numbers": [-inf, 1.0, -inf, 2.0],
    "infinity": [inf, 1.0, 2.0],
    "both infinities": [1.0, inf, -inf, inf],
    "nan": [1.0, nan, 2.0],
    "nan and infinity": [inf, 1.0, nan],
    "the least number": [-LARGEST] * 3,
    "the least number and a larger one": [-LARGEST, 5.0],
    "ends of the range": [-LARGEST, LARGEST],
    "rising": [float(n) for n in range(-200, 200, 7)],
}


def with_values(values: list[float], rest: float) -> Tensor:
    """A row of several blocks in which the values stand far apart."""
    row = torch.full((17001,), rest)
    for place, value in enumerate(values):
        row[(place * 5003 + 17) % 17001] = value
    return row


@pytest.mark.parametrize("name", ["parts of a softmax", "logsumexp", "exponentials about the mean"])
def test_infinities_and_nan_come_out_as_in_eager(name: str) -> None:
    function = FUNCTIONS[name]
    cases = SPECIAL
    if name == "exponentials about the mean":
        # Their mean is what roundings leave, or overflows.
        cases = {name: values for name, values in cases.items() if max(map(abs, values)) != LARGEST}
    x = torch.stack([with_values(values, rest) for values in cases.values() for rest in (-inf, 0.5)])
    compilation = single_kernel(function, x)
    for results in (call_interpreted(compilation, [x]), build(compilation).executable.call([x])):
        for result, want in zip(results, as_list(function(x)), strict=True):
            torch.testing.assert_close(result, want, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_what_is_no_number_stays_so_in_a_variance() -> None:
    x = torch.stack([with_values(values, 0.5) for values in ([inf], [nan], [-inf, inf], [1e30])])
    compilation = single_kernel(FUNCTIONS["variance and mean"], x)
    for results in (call_interpreted(compilation, [x]), build(compilation).executable.call([x])):
        variance, mean = results
        assert not variance.isfinite().any()
        torch.testing.assert_close(mean, x.mean(-1), equal_nan=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_a_row_gives_the_same(name: str) -> None:
    x = INPUTS["a part of a block"]
    results = looped(single_kernel(FUNCTIONS[name], x), [x])
    for result, want in zip(results, as_list(FUNCTIONS[name](x.double())), strict=True):
        torch.testing.assert_close(result.double().reshape(want.shape), want, rtol=1e-4, atol=1e-5)


def test_what_is_read_once_takes_less() -> None:
    compilation = compile_program(FUNCTIONS["logsumexp"], torch.empty(2048, 50304))
    (decision,) = [d for d in compilation.schedule.decisions if d.reason == "fused.single_pass"]
    assert isinstance(decision.verdict, Fuse)
    assert decision.verdict.score.fused_us < 0.75 * decision.verdict.score.unfused_us
    (kernel,) = compilation.triton.values()
    assert kernel.source.count("for r_start in") == 1


def test_a_row_in_registers_is_left_as_it_is() -> None:
    compilation = compile_program(FUNCTIONS["logsumexp"], torch.empty(512, 1024))
    assert "profit.single_pass" in {d.reason for d in compilation.schedule.decisions}
    assert not compilation.groups[0].single_pass


def test_a_knob_turns_it_off() -> None:
    compilation = compile_program(FUNCTIONS["logsumexp"], torch.empty(2048, 50304), disable=("single_pass", "team"))
    (kernel,) = compilation.triton.values()
    assert kernel.source.count("for r_start in") == 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_that_programs_share_compile_for_gpus(name: str) -> None:
    """The compiler minds what the interpreter does not, such as one name for two shapes."""
    compilation = compile_program(FUNCTIONS[name], torch.empty(1024, 300).t())
    assert compiled_for_gpus(compilation)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_compile_for_gpus_without_spills(name: str) -> None:
    compilation = single_kernel(FUNCTIONS[name], torch.empty(2048, 50304))
    assert all(result.spills == 0 for result in compiled_for_gpus(compilation))
