"""Tiles by which sectors and lines of memory are whole, and those of threads that wait twice: on an H200, at the sizes
of real use. Nothing is computed."""

from __future__ import annotations

import torch

from bench.fusion.program import index, tensor
from compiler.schedule.tiles.columns import shares_of
from compiler.schedule.tiles.plan import LoopedPlan
from tests.codegen.triton.test_tile_choices import H200, elements_of_a_thread, plans_of

Tensor = torch.Tensor


def test_pixels_of_pairs_that_go_to_two_channels_are_read_by_one_program() -> None:
    """Each channel by itself would take half of every sector."""
    (plan,) = plans_of(lambda x: torch.nn.functional.pixel_unshuffle(x, 2) * 0.5, tensor("16 48 256 256"))
    rows, columns = plan.axes
    assert rows.dims[-1].size == 2 and columns.dims[-1].size == 128
    assert rows.block > 2 and columns.block == 128


def test_long_work_on_a_matrix_and_its_transpose_leaves_room_for_more_threads() -> None:
    def powers(x: Tensor) -> Tensor:
        real, imaginary = x, x.T
        for _ in range(6):
            real, imaginary = real * real - imaginary * imaginary + x, 2.0 * real * imaginary + x.T
        return real * real + imaginary * imaginary

    (long,) = plans_of(powers, tensor("2048 2048"))
    (short,) = plans_of(lambda x: x + x.T, tensor("2048 2048"))
    elements = [plan.axes[0].block * plan.axes[1].block // (32 * plan.num_warps) for plan in (long, short)]
    assert elements == [8, 16]
    assert long.axes[-1].block == short.axes[-1].block  # what is stored along memory keeps its whole lines


def test_rows_of_a_large_table_are_copied_by_more_bytes_a_thread_than_a_few_rows_or_looked_up_elements() -> None:
    def rows(places: Tensor, table: Tensor) -> Tensor:
        return torch.nn.functional.embedding(places, table)

    (plan,) = plans_of(rows, index("16384", "32000"), tensor("32000 256"))
    assert elements_of_a_thread(plan) == 16
    (plan,) = plans_of(rows, index("256", "32000"), tensor("32000 256"))
    assert elements_of_a_thread(plan) <= 2
    (plan,) = plans_of(lambda places, table: table[places], index("4194304", "256"), tensor("256"))
    assert elements_of_a_thread(plan) < 16


def test_small_kernels_have_few_elements_in_each_thread() -> None:
    (plan,) = plans_of(lambda x: x.tanh(), tensor("196608", torch.bfloat16))
    assert elements_of_a_thread(plan) == 2
    (plan,) = plans_of(lambda x: x.tanh(), tensor("8388608", torch.bfloat16))
    assert elements_of_a_thread(plan) > 2


def test_ragged_rows_are_gone_over_by_several_lines_at_a_time() -> None:
    """A program's part of such a row begins and ends within lines that others move as well."""

    def stored(x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.where(x > 0.5, x, 0.0)
        return y, y.amax(1)

    lines = []
    for columns in (500, 512, 501):
        (plan,) = plans_of(stored, tensor(f"128 300 {columns}"))
        lines.append(plan.axes[0].block * 4 // 128)
    assert lines == [4, 1, 1]
    (plan,) = plans_of(lambda x: x.mean((1, 3)), tensor("16 24 32 40 48"))
    assert plan.axes[0].block == 64


def test_long_work_on_a_shared_row_leaves_registers_for_all_its_programs_at_a_time() -> None:
    def likelihood(spread: Tensor, mean: Tensor, count: Tensor) -> Tensor:
        shape, rate = torch.nn.functional.softplus(spread) + 0.1, mean + 0.1
        return -(shape * (shape / (shape + rate)).log() + count * (rate / (shape + rate)).log()).mean()

    (long,) = plans_of(likelihood, *[tensor("8388608")] * 3)
    of_one = -(-long.splits // H200.multiprocessors)
    assert long.most_registers * 32 * long.num_warps * of_one <= H200.registers_per_multiprocessor
    (short,) = plans_of(lambda x, y: (x * y).sum(), *[tensor("8388608")] * 2)
    assert not short.most_registers


def test_sums_of_a_matrix_and_a_transposed_one_take_whole_lines_of_both() -> None:
    """The symmetric matrix is stored and summed by one kernel, which reads neither by single elements."""

    def laplacian(x: Tensor) -> Tensor:
        both = (x + x.T) / 2
        return torch.diag(both.sum(1)) - both

    summed, _ = plans_of(laplacian, tensor("4096 4096"))
    rows, columns = summed.axes
    assert rows.block >= 32 and columns.block >= 32
    assert {s.op for s in summed.program.statements} >= {"reduce", "store"}


def test_rows_that_cannot_be_shared_are_not_taken_by_few_programs_of_whole_lines() -> None:
    """Cross entropies along both, of which each program gathers sums: 128 programs would have all of it."""

    def both_ways(x: Tensor) -> Tensor:
        own = torch.arange(4096, device=x.device)
        loss = torch.nn.functional.cross_entropy
        return loss(x / 0.07, own) + loss(x.T / 0.07, own)

    plans = plans_of(both_ways, tensor("4096 4096"))
    assert not any(plan.rows_in_turn and isinstance(plan, LoopedPlan) and plan.axes[0].block == 32 for plan in plans)


def test_what_stores_columns_is_not_shared_by_programs_of_unlike_steps_that_are_enough() -> None:
    def shares(r_blocks: int, is_stored: bool) -> int:
        return shares_of(500, r_blocks, warps=4, most=64, carries=False, is_stored=is_stored, device=H200)

    assert shares(19, is_stored=True) == 1
    assert shares(19, is_stored=False) > 1 and shares(20, is_stored=True) > 1


def test_rows_with_a_very_long_text_are_taken_by_several_warps() -> None:
    def short(x: Tensor) -> Tensor:
        return torch.softmax(x, 1)

    def long(x: Tensor) -> Tensor:
        for _ in range(4):
            x = x.abs().pow(1.7).log1p()
        return torch.softmax(x, 1)

    assert [plans_of(one, tensor("32768 200"))[0].num_warps for one in (short, long)] == [1, 4]
