"""Loaded indices in 32 bits: what they read is what eager reads, and what a program does with numbers itself is
kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.compile_program import call_interpreted, compile_program

Tensor = torch.Tensor
ROWS = 37


def looked_up(table: Tensor, index: Tensor) -> Tensor:
    return table[index] * 2


def looked_up_twice(table: Tensor, index: Tensor) -> Tensor:
    return table[index].tanh() + table[index - 1].amax(-1, keepdim=True)


def between_entries(table: Tensor, index: Tensor) -> Tensor:
    table, place = table.exp(), index.abs() * 0.9
    low = place.floor().long()
    share = (place - low)[:, None]
    return table[low] * (1 - share) + table[low + 1] * share


def source_and_result(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[str, Tensor]:
    """The text of the kernels, and what they compute of inputs in the order in which the function uses them."""
    compilation = compile_program(function, *inputs)
    (result,) = call_interpreted(compilation, inputs)
    return "".join(kernel.source for kernel in compilation.triton.values()), result


@pytest.mark.parametrize("function", [looked_up, looked_up_twice])
def test_places_are_brought_into_their_dimension_in_32_bits(function: Callable[..., Tensor]) -> None:
    table, index = torch.randn(ROWS, 5), torch.arange(1 - ROWS, ROWS - 1)
    source, result = source_and_result(function, table, index)
    torch.testing.assert_close(result, function(table, index))
    assert "tl.minimum(" in source
    assert "tl.int64)" not in source.split('"""', 2)[-1].replace("indices.to(tl.int64)", "")


def test_what_lies_between_entries_takes_its_share_of_both() -> None:
    table, index = torch.randn(ROWS, 5), torch.arange(0, ROWS - 2)
    source, result = source_and_result(between_entries, table, index)
    torch.testing.assert_close(result, between_entries(table, index))
    assert "tl.float32" not in source.split("floor")[-1]


def test_bounds_that_a_program_asks_for_hold_beyond_32_bits() -> None:
    def bounded(index: Tensor, table: Tensor) -> Tensor:
        place = torch.where(index < 0, index + ROWS, index)
        place = torch.minimum(torch.maximum(place, torch.zeros_like(place)), torch.full_like(place, ROWS - 1))
        return table[place] * 2

    table, index = torch.randn(ROWS, 5), torch.tensor([3, -1, 2**32 + 5, -(2**40), 2**31])
    _, result = source_and_result(bounded, index, table)
    torch.testing.assert_close(result, bounded(index, table))


def test_a_float_that_is_far_from_the_place_it_makes_is_cut_off_in_64_bits() -> None:
    def far(x: Tensor, table: Tensor) -> Tensor:
        return table[x.long() - 2**40] * 2

    table, x = torch.randn(ROWS, 5), torch.tensor([2.0**40, 2.0**40 + 3, 2.0**40 - 1], dtype=torch.float64)
    _, result = source_and_result(far, x, table)
    torch.testing.assert_close(result, far(x, table))


def test_zeros_of_rounded_floats_lose_their_sign_as_whole_numbers_do() -> None:
    def signs(x: Tensor) -> Tensor:
        return torch.copysign(torch.ones_like(x), x.floor().long().float())

    x = torch.tensor([-0.0, 0.0, 0.5, -0.5, 7.25])
    source, result = source_and_result(signs, x)
    assert result.tolist() == signs(x).tolist() == [1, 1, 1, -1, 1]
    assert "tl.int64" not in source
