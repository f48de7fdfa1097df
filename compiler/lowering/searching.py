"""Where a value belongs in a sorted row: a binary search of as many steps as the row's length has digits."""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import common_dtype, element_of
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant, fixed

aten = torch.ops.aten


@lowers(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    build: Builder, rows: TensorValue, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: TensorValue | None = None,
) -> TensorValue:  # fmt: skip
    if not isinstance(values, TensorValue):
        values = constant(values, (), rows.dtype)
    return _search(build, rows, values, right or side == "right", out_int32, sorter)


@lowers(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(
    build: Builder, values: Any, boundaries: TensorValue, *, out_int32: bool = False, right: bool = False
) -> TensorValue:
    return searchsorted(build, boundaries, values, out_int32=out_int32, right=right)


def _search(
    build: Builder, rows: TensorValue, values: TensorValue, right: bool, out_int32: bool, sorter: TensorValue | None
) -> TensorValue:
    """Every step halves the range [low, high) in which the place lies; a range that is empty stays so."""
    length = fixed(rows.shape[-1])
    dtype = common_dtype(rows, values)
    if dtype == torch.bool:
        raise CannotLower("it searches among bools")

    def element(position: Position) -> Any:
        row = position[:-1] if rows.rank > 1 else ()
        wanted = element_of(values, values.shape, position, dtype)
        low, high = ops.constant(0, torch.int64), ops.constant(length, torch.int64)
        for _ in range(length.bit_length()):
            is_open = ops.lt(low, high)
            middle = ops.truncdiv(ops.add(low, high), ops.constant(2, torch.int64))
            place: Index = ops.indirect(ops.minimum(middle, ops.constant(length - 1, torch.int64)), length)
            if sorter is not None:
                place = ops.indirect(ops.to_dtype(sorter.load((*row, place)), torch.int64), length)
            found = ops.to_dtype(rows.load((*row, place)), dtype)
            # A NaN compares to nothing, and so goes behind everything, as in eager.
            is_behind = ops.gt(found, wanted) if right else ops.ge(found, wanted)
            goes_up = ops.logical_and(is_open, ops.logical_not(is_behind))
            low = ops.where(goes_up, ops.add(middle, ops.constant(1, torch.int64)), low)
            high = ops.where(ops.logical_and(is_open, is_behind), middle, high)
        return low

    return build.pointwise(values.shape, torch.int32 if out_int32 else torch.int64, element)
