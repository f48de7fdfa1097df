"""What a scatter may share a kernel with, what memory it works in, and how often it runs."""

from __future__ import annotations

import torch

from compiler.backend import fusionscope
from compiler.compile import build
from compiler.schedule.describe.schedule import sums_in_any_order
from tests.compile_program import call_interpreted, compile_program
from tests.schedule.test_kernels_and_bytes import COLUMNS, ROWS, rnd, scatter_rows, two_scatters


def test_a_scatter_shares_no_loop_with_what_fills_or_reads_it() -> None:
    def function(x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return torch.relu(scatter_rows(x, y, rows))

    compilation = compile_program(function, rnd(64, 32), rnd(64, 32), torch.arange(64))
    refused = {(d.a, d.b, d.reason) for d in compilation.schedule.decisions if d.reason.startswith("dependency.")}
    assert refused == {
        ("index_put_start", "index_put", "dependency.mutation"),
        ("index_put", "relu", "dependency.scatter"),
        # They share loops and no tensor, and the scatter must run between them.
        ("index_put_start", "relu", "dependency.intermediate"),
    }
    scattered = compilation.memory.buffers["index_put"]
    assert (scattered.fate, scattered.takes_over) == ("in_place", "index_put_start")


def test_scatters_that_add_floats_are_known_to_depend_on_the_order() -> None:
    rows = torch.arange(64)
    floats = compile_program(scatter_rows, rnd(64, 32), rnd(64, 32), rows)
    whole = compile_program(lambda i: torch.zeros(9, dtype=torch.int64).index_add(0, i % 9, i), rows)
    assert sums_in_any_order(floats.loops) == ["index_put"] and sums_in_any_order(whole.loops) == []


def test_a_scatter_is_never_computed_again() -> None:
    def counted(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts = torch.zeros(64).index_add(0, rows, torch.ones(rows.shape))
        return counts[rows], counts.flip(0)

    compilation = compile_program(counted, torch.randint(0, 64, (ROWS,)))
    scatters = [m for group in compilation.groups for m in group.members if m.body.is_scatter]
    assert [member.name for member in scatters] == ["index_put"]
    rows = torch.randint(0, 64, (ROWS,))
    for result, wanted in zip(build(compilation).executable.call([rows]), counted(rows), strict=True):
        assert torch.equal(result, wanted)


def test_a_scatter_runs_once_for_each_source_even_inside_of_a_reduction() -> None:
    """The place and the value of the count depend on the row alone, but every element of it counts."""

    def function(rows: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count = torch.zeros(8, dtype=torch.int64).index_put(
            (rows[:, None].expand_as(x),), torch.ones((), dtype=torch.int64), accumulate=True
        )
        return x.sum(1), count

    x, rows = rnd(64, 300), torch.randint(0, 8, (64,))
    compilation = compile_program(function, rows, x)
    for _, count in (build(compilation).executable.call([rows, x]), call_interpreted(compilation, [rows, x])):
        assert torch.equal(count, torch.bincount(rows, minlength=8) * 300)


def test_two_scatters_into_one_tensor_run_one_after_the_other() -> None:
    """The first one clears what the second one adds to."""

    def function(rows: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        every = rows[:, None].expand_as(x)
        return (x[:64] + 1).scatter_reduce(0, every, x, "sum", include_self=False)

    x, rows = rnd(ROWS, 8), torch.randint(0, 32, (ROWS,))
    compilation = compile_program(function, rows, x)
    assert len(compilation.groups) == 3
    for (result,) in (build(compilation).executable.call([rows, x]), call_interpreted(compilation, [rows, x])):
        torch.testing.assert_close(result, function(rows, x))


def test_fused_scatters_agree_in_both_languages() -> None:
    x, rows = rnd(200, COLUMNS), torch.randint(0, 64, (200,))
    compilation = compile_program(two_scatters, rows, x)
    for results in (build(compilation).executable.call([rows, x]), call_interpreted(compilation, [rows, x])):
        for result, wanted in zip(results, two_scatters(rows, x), strict=True):
            torch.testing.assert_close(result, wanted)


def test_an_index_outside_of_the_tensor_writes_nothing() -> None:
    """Eager raises; a kernel must not touch memory that is not the tensor's."""
    x, rows = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 3, 4, 1 << 40, -4, -5, -(1 << 40)])

    def function(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return x.index_put((rows,), torch.ones(7, 3), accumulate=True)

    compilation = compile_program(function, x, rows.clamp(-4, 3))
    wanted = x + torch.tensor([2.0, 0.0, 0.0, 1.0])[:, None]
    for (result,) in (build(compilation).executable.call([x, rows]), call_interpreted(compilation, [x, rows])):
        assert torch.equal(result, wanted)


def test_slices_of_a_permuted_tensor_are_filled_through_the_backend() -> None:
    """The decomposition of PyTorch 2.11 copies into a tensor that is no input, which AOTAutograd refuses."""
    x, places = rnd(3, 7, 7).permute(2, 1, 0), torch.tensor([1, -2])
    torch._dynamo.reset()
    filled = torch.compile(lambda x, i: x.index_fill(1, i, 1.5), backend=fusionscope)(x, places)
    assert torch.equal(filled, x.index_fill(1, places, 1.5))


def test_memory_of_a_scatter_is_used_again_only_after_its_last_reader() -> None:
    def function(rows: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(64, 8, dtype=torch.float64)
        first = zeros.index_add(0, rows, x)
        second = zeros.index_add(0, rows, first[rows] * x)
        third = zeros.index_add(0, rows, second[rows] - x)
        return third.sin()

    x, rows = rnd(ROWS, 8).double(), torch.randint(0, 64, (ROWS,))
    compilation = compile_program(function, rows, x, disable=("batch",))
    assert "reused" in {buffer.fate for buffer in compilation.memory.buffers.values()}
    (result,) = build(compilation).executable.call([rows, x])
    torch.testing.assert_close(result, function(rows, x))
