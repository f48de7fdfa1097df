"""Where a value belongs in a sorted row: a binary search of as many steps as the row's length has digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import common_dtype, element_of
from compiler.lowering.registry import decomposes, lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten

#: Steps for a row whose length differs from call to call: enough for 2**40 elements, more than any memory holds.
MOST_STEPS = 41


@lowers(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    build: Builder, rows: TensorValue, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: TensorValue | None = None,
) -> TensorValue:  # fmt: skip
    if not isinstance(values, TensorValue):
        values = constant(values, (), rows.dtype)
    if sorter is not None:
        raise CannotLower("its rows are sorted by another tensor")
    goes_behind_equals = right or side == "right"
    length = rows.shape[-1]
    dtype = common_dtype(rows, values)
    if dtype == torch.bool:
        raise CannotLower("it searches among bools")

    def element(position: Position) -> Any:
        row = position[:-1] if rows.rank > 1 else ()
        wanted = element_of(values, values.shape, position, dtype)

        def is_behind(index: Index) -> Any:
            found = rows.load((*row, index)).to(dtype)
            # A NaN compares to nothing, and so goes behind everything, as in eager.
            return found > wanted if goes_behind_equals else found >= wanted

        return first_index_where(is_behind, length)

    return build.pointwise(values.shape, torch.int32 if out_int32 else torch.int64, element)


@lowers(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(
    build: Builder, values: Any, boundaries: TensorValue, *, out_int32: bool = False, right: bool = False
) -> TensorValue:
    return searchsorted(build, boundaries, values, out_int32=out_int32, right=right)


def first_index_where(holds: Callable[[Index], Any], length: Integer) -> Any:
    """The first of `length` indices where `holds` is true, given that it is for all indices after that one; `length`
    where there is none. Every step halves the range [low, high) in which it lies; a range that is empty stays so."""
    low, high = ops.constant(0, torch.int64), ops.constant(length, torch.int64)
    for _ in range(length.bit_length() if isinstance(length, int) else MOST_STEPS):
        is_open = low < high
        middle = ops.truncdiv(low + high, 2)
        is_behind = holds(ops.indirect(ops.minimum(middle, length - 1), length))
        goes_up = is_open & ~is_behind
        low = ops.where(goes_up, middle + 1, low)
        high = ops.where(is_open & is_behind, middle, high)
    return low


@decomposes(aten.repeat_interleave.Tensor)
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Each position as often as `repeats` says: position p of the result is of the first one that ends behind p."""
    if output_size is None:
        return NotImplemented  # type: ignore[no-any-return]
    if not repeats.numel():
        return repeats.new_zeros(output_size)
    positions = torch.arange(output_size, device=repeats.device)
    found = torch.searchsorted(repeats.cumsum(0), positions, right=True)
    return found.clamp(max=repeats.numel() - 1).to(repeats.dtype)


@lowers(aten.repeat_interleave.Tensor)
def repeats_of_any_number(build: Builder, repeats: TensorValue, **_: Any) -> TensorValue:
    raise CannotLower("its result has as many elements as the repeats add up to; `output_size` would say how many")
