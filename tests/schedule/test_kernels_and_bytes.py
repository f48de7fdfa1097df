"""How many kernels a program becomes, and how many bytes they move: exact, for programs one can check by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.compile import build
from compiler.options import Options
from compiler.pipeline import explore
from compiler.present import present_kernels
from compiler.runtime.checking.verify import relative_error
from compiler.schedule.cost.moved import moved_by_group
from compiler.schedule.describe.traffic import describe_traffic
from compiler.schedule.rules import Limits
from tests.compile_program import bytes_moved, compile_program, kernel_count

# What cancels in a sum of random numbers decides its relative error: the same numbers in every run.
torch.manual_seed(0)
ROWS, COLUMNS = 1024, 512
MATRIX = ROWS * COLUMNS * 4


def wavy_gate(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.relu((torch.sin(u) * torch.cos(v) + u) * v)


def softmax(x: torch.Tensor) -> torch.Tensor:
    m = x.max(dim=-1, keepdim=True).values
    e = torch.exp(x - m)
    return e / e.sum(dim=-1, keepdim=True)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def gelu_mlp(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    h = F.linear(x, w1, b1)
    h = 0.5 * h * (1.0 + torch.tanh(0.7978845608 * (h + 0.044715 * torch.pow(h, 3.0))))
    return F.linear(h, w2, b2)


def dead_matmul(tokens: torch.Tensor, w_in: torch.Tensor, w_gate: torch.Tensor, w_out: torch.Tensor) -> torch.Tensor:
    hidden = tokens @ w_in
    gate = tokens @ w_gate  # noqa: F841  never read: that is the point
    return F.relu(hidden) @ w_out


def reverse_read(x: torch.Tensor) -> torch.Tensor:
    y = x.sum(1)
    return y * torch.flip(y, (0,))


def rope(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    q1, q2 = q.chunk(2, -1)
    return q * cos + torch.cat((-q2, q1), -1) * sin


def rnd(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


@dataclass(frozen=True)
class Program:
    name: str
    function: Callable[..., Any]
    inputs: tuple[torch.Tensor, ...]
    kernels: int
    library_calls: int
    #: Bytes that the program must move: None where it is not the floor and not worth counting by hand.
    bytes: int | None


def chances_so_far(logits: torch.Tensor) -> torch.Tensor:
    """How likely one of the first values is, for each number of them."""
    return torch.softmax(logits, -1).cumsum(-1).clamp(max=1)


def scatter_rows(x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros(64, x.shape[1], dtype=x.dtype).index_add(0, rows, x * y)


def two_scatters(rows: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums and largest elements of the same rows."""
    every = rows[:, None].expand_as(x)
    zeros = torch.zeros(64, x.shape[1], dtype=x.dtype)
    return zeros.scatter_add(0, every, x), zeros.scatter_reduce(0, every, x, "amax", include_self=True)


def some_rows() -> torch.Tensor:
    return torch.randint(0, 64, (ROWS,))


PROGRAMS = [
    Program(
        "pointwise chain moves three tensors", wavy_gate, (rnd(ROWS, COLUMNS), rnd(ROWS, COLUMNS)), 1, 0, 3 * MATRIX
    ),
    Program("softmax by hand moves two tensors", softmax, (rnd(ROWS, COLUMNS),), 1, 0, 2 * MATRIX),
    Program("library softmax", lambda x: torch.softmax(x, -1), (rnd(ROWS, COLUMNS),), 1, 0, 2 * MATRIX),
    Program("softmax over columns", lambda x: torch.softmax(x, 0), (rnd(ROWS, COLUMNS),), 1, 0, 2 * MATRIX),
    Program(
        "layer norm", layer_norm, (rnd(ROWS, COLUMNS), rnd(COLUMNS), rnd(COLUMNS)), 1, 0, 2 * MATRIX + 2 * COLUMNS * 4
    ),
    Program(
        "bias is broadcast",
        lambda x, b: torch.relu(x + b),
        (rnd(ROWS, COLUMNS), rnd(COLUMNS)),
        1,
        0,
        2 * MATRIX + COLUMNS * 4,
    ),
    Program(
        "multilayer perceptron", gelu_mlp, (rnd(512, 64), rnd(128, 64), rnd(128), rnd(64, 128), rnd(64)), 1, 1, None
    ),
    Program(
        "dead matrix product",
        dead_matmul,
        (rnd(8, 16), rnd(16, 32), rnd(16, 32), rnd(32, 16)),
        1,
        1,
        4 * (8 * 16 + 16 * 32 + 8 * 32 + 8 * 32 + 32 * 16 + 8 * 16),
    ),
    Program("read in reverse", reverse_read, (rnd(ROWS, COLUMNS),), 2, 0, MATRIX + 3 * ROWS * 4),
    Program(
        "four readers of one input",
        lambda x: (x.sin(), x.cos(), x.sum(-1), x.amax(-1)),
        (rnd(ROWS, COLUMNS),),
        1,
        0,
        3 * MATRIX + 2 * ROWS * 4,
    ),
    Program(
        "reductions over different axes",
        lambda x: (x.sum(0), x.sum(1)),
        (rnd(ROWS, COLUMNS),),
        1,
        0,
        MATRIX + (ROWS + COLUMNS) * 4,
    ),
    Program(
        "transposed read",
        lambda x, y: x.t() + y,
        (rnd(COLUMNS, COLUMNS), rnd(COLUMNS, COLUMNS)),
        1,
        0,
        3 * COLUMNS * COLUMNS * 4,
    ),
    Program(
        "rotary embedding",
        rope,
        (rnd(2, 4, 64, 32), rnd(64, 32), rnd(64, 32)),
        1,
        0,
        4 * (2 * 2 * 4 * 64 * 32 + 2 * 64 * 32),
    ),
    Program(
        "concatenation of two",
        lambda x, y: torch.cat((x.sin(), y.cos()), 1) * 2,
        (rnd(64, 32), rnd(64, 96)),
        1,
        0,
        4 * 2 * 64 * 128,
    ),
    Program("a running sum of a softmax moves two tensors", chances_so_far, (rnd(ROWS, COLUMNS),), 1, 0, 2 * MATRIX),
    Program("a running sum down the columns", lambda x: x.sin().cumsum(0) * 2, (rnd(ROWS, COLUMNS),), 1, 0, 2 * MATRIX),
    Program(
        "several scans share their loops",
        lambda x: (x.cumsum(-1), (x * x).cumsum(-1), x.cummax(-1).values),
        (rnd(ROWS, COLUMNS),),
        1,
        0,
        4 * MATRIX,
    ),
    Program(
        "a running extreme and its position",
        lambda x: tuple(x.cummin(-1)),
        (rnd(ROWS, COLUMNS),),
        1,
        0,
        2 * MATRIX + 2 * MATRIX,
    ),
    Program(
        "what scans along rows and what scans along columns",
        lambda x: (x.cumsum(0), x.cumsum(1)),
        (rnd(ROWS, COLUMNS),),
        2,
        0,
        4 * MATRIX,
    ),
    Program(
        "what is scattered is computed on the way, into zeros",
        scatter_rows,
        (rnd(ROWS, COLUMNS), rnd(ROWS, COLUMNS), some_rows()),
        2,
        0,
        # The zeros are written; then both inputs and the index are read, and the sums are read and written.
        2 * MATRIX + ROWS * 8 + 3 * 64 * COLUMNS * 4,
    ),
    Program(
        "two scatters of one source read it once",
        two_scatters,
        (some_rows(), rnd(ROWS, COLUMNS)),
        # The zeros of both are written in one launch.
        2,
        0,
        MATRIX + ROWS * 8 + 2 * 3 * 64 * COLUMNS * 4,
    ),
    Program(
        "a scatter into a computed tensor changes it in place",
        lambda x, v, i: x.sin().index_put((i,), v),
        (rnd(ROWS, COLUMNS), rnd(COLUMNS), torch.arange(0, ROWS, 4)),
        2,
        0,
        2 * MATRIX + ROWS // 4 * 8 + COLUMNS * 4 + MATRIX // 4,
    ),
    Program("sum of everything", lambda x: x.sum(), (rnd(ROWS, COLUMNS),), 1, 0, MATRIX + 4),
    Program("variance and mean", lambda x: torch.var_mean(x, -1), (rnd(ROWS, COLUMNS),), 1, 0, MATRIX + 2 * ROWS * 4),
    Program(
        "views cost nothing",
        lambda x: x.view(32, 32, 512).permute(1, 0, 2).reshape(1024, 512) + 1,
        (rnd(ROWS, COLUMNS),),
        1,
        0,
        2 * MATRIX,
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_kernels_and_bytes(program: Program) -> None:
    compilation = compile_program(program.function, *program.inputs)
    assert kernel_count(compilation) == (program.kernels, program.library_calls)
    if program.bytes is not None:
        assert bytes_moved(compilation) == program.bytes


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_results_are_as_good_as_eager(program: Program) -> None:
    compilation = compile_program(program.function, *program.inputs)
    results = build(compilation).executable.call(list(program.inputs))
    exact = program.function(*[x.double() if x.is_floating_point() else x for x in program.inputs])
    eager = program.function(*program.inputs)
    exact, eager = (list(o) if isinstance(o, tuple) else [o] for o in (exact, eager))
    assert [result.stride() for result in results] == [tensor.stride() for tensor in eager]
    assert relative_error(results, exact) <= 3 * relative_error(eager, exact) + 8 * torch.finfo(torch.float32).eps


def test_a_refusal_names_both_positions() -> None:
    compilation = compile_program(reverse_read, rnd(ROWS, COLUMNS))
    (decision,) = compilation.schedule.decisions
    assert decision.verdict.reason == "index.different_positions"
    assert (str(decision.names["written"]), str(decision.names["read"])) == ("x0", "-x0 + 1023")


def test_a_knob_turns_a_kind_of_fusion_off() -> None:
    compilation = compile_program(softmax, rnd(64, 32), disable=("vertical", "inline", "horizontal", "across", "batch"))
    assert kernel_count(compilation)[0] == 5
    assert {d.verdict.reason for d in compilation.schedule.decisions} >= {"policy.disabled"}


@pytest.mark.parametrize("knobs", [{"disabel": []}, {"disable": ["vertcal"]}, {"most_nodes": 0}, {"disable": "inline"}])
def test_a_knob_that_says_nothing_is_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"knob|disable|most_nodes"):
        Options(knobs=knobs)


def test_a_small_group_limit_is_a_reason() -> None:
    compilation = compile_program(wavy_gate, rnd(64, 32), rnd(64, 32), most_nodes=2)
    assert {len(group.members) for group in compilation.groups} <= {1, 2}
    assert "policy.group_size" in {d.verdict.reason for d in compilation.schedule.decisions}


def test_a_value_that_is_cheap_to_compute_again_is_not_written() -> None:
    def picked(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        logits = x - x.amax(-1, keepdim=True)
        return logits.gather(1, places).squeeze(1) - logits.exp().sum(-1).log()

    places = torch.randint(0, COLUMNS, (ROWS, 1))
    compilation = compile_program(picked, rnd(ROWS, COLUMNS), places)
    assert compilation.memory.buffers["sub"].fate == "register"


def test_a_kernel_whose_result_is_cheap_to_compute_again_in_both_its_readers_is_gone() -> None:
    """One scans along rows, the other sums channels of rows: no kernel has both."""

    def rendered(density: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
        alpha = 1 - torch.exp(-density)
        passed = torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1]], 1)
        weights = alpha * torch.cumprod(passed, 1)
        return (weights[..., None] * colours).sum(1)

    inputs = rnd(4096, 128).abs(), rnd(4096, 128, 3)
    compilation = compile_program(rendered, *inputs)
    assert kernel_count(compilation) == (2, 0)
    (alpha,) = {d.about for d in compilation.schedule.decisions if d.reason == "fused.recompute"}
    assert alpha is not None and compilation.memory.buffers[alpha].fate == "register"
    assert kernel_count(compile_program(rendered, *inputs, disable=("recompute",))) == (3, 0)


@pytest.mark.parametrize("count", [30, 90])
def test_a_kernel_that_computes_values_again_has_no_more_buffers_than_a_fused_one(count: int) -> None:
    """On a CPU the sum of 90 tensors takes longer in one loop than in two, and with others beside it several times."""

    def summed(*many: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = many[0]
        for one in many[1:]:
            total = total + one
        return total.sum(1), total.sum(0), total.cumsum(1)

    limits = Limits()
    for group in compile_program(summed, *(rnd(64, 64) for _ in range(count))).groups:
        most = limits.most_buffers if group.space.r else limits.most_buffers_of_chain
        assert len(group.read_buffers) + len(group.stored) <= most


def test_a_kernel_is_counted_with_what_it_computes_where_its_readers_compute_its_values_again() -> None:
    """The hyperbolic tangents of a step lead to the next step alone, which computes them from sums."""

    def steps(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for step in range(3):
            x = torch.sin(x) * y
            y = torch.tanh(y + x.sum(1 - step % 2, keepdim=True))
        return x, y

    compilation = compile_program(steps, rnd(64, 64), rnd(64, 64))
    again = {decision.about for decision in compilation.schedule.decisions if decision.reason == "fused.recompute"}
    assert again
    for group in compilation.groups:
        moved = moved_by_group(group, compilation.schedule.graph.buffers)
        assert {*moved.read, *moved.written} == set(compilation.primary[group.name].parameters)

    first, second = present_kernels(compilation)
    assert first.left_out and set(first.left_out) <= set(second.computes_again)
    for kernel in (first, second):
        computed = {*kernel.nodes, *kernel.computes_again}.difference(kernel.left_out)
        assert {node for line in kernel.lines for node in line.nodes} == computed
        assert set(kernel.origins) == computed

    fates = {(edge.tensor, edge.consumer): edge.fate for edge in describe_traffic(compilation.schedule, None).edges}
    assert fates["sum_2", "add_1"] == "memory" and fates["add_1", "tanh_1"] == "register"


def transposed_and_picked(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).t().reshape(-1)[::3] * 2


def rows_moved_on(x: torch.Tensor) -> torch.Tensor:
    """What is written part by part."""
    y = (x + 1).view(4, -1)
    y[1:3] = y[0:2].clone()
    return y


@pytest.mark.parametrize("function", [transposed_and_picked, rows_moved_on])
def test_a_copy_inside_of_a_kernel_is_not_left_out_of_it(function: Callable[..., Any]) -> None:
    """No instruction is left of a copy that its reader takes the elements of: it is in the kernel all the same."""
    (kernel,) = present_kernels(compile_program(function, rnd(8, 8)))
    assert "clone" in kernel.nodes and not kernel.left_out


def test_a_launch_leads_to_the_lines_of_what_it_computes_again() -> None:
    source = (
        "import torch\n@torch.compile\ndef f(x):\n    p = torch.softmax(x, -1)\n"
        "    return torch.cat([p, x], 1).sum(0), p.amax(-1)\nf(torch.randn(33, 16))\n"
    )
    (graph,) = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule", "codegen"))).graphs
    assert any(kernel.computes_again for kernel in graph.kernels)
    assert graph.traffic is not None and graph.traffic.fused is not None
    assert [launch.lines for launch in graph.traffic.fused.launches] == [k.user_lines for k in graph.kernels]


def test_an_element_that_several_points_read_counts_once() -> None:
    """Every point of a row reads the one row of x, by a quotient of the loop over all rows."""

    def first_row(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (k * x[:, :1]).sum(-1)

    assert bytes_moved(compile_program(first_row, rnd(4, 16, 8), rnd(4, 3, 8))) == 4 * (4 * 16 * 8 + 4 * 8 + 4 * 16)
