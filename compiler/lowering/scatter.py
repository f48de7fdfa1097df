"""Writes at computed indices: what all of them are built with, and those along one dimension.

    scatter_add_start = x                             one pointwise node, over the elements of the result
    scatter_add[index[p]] += source[p]                one scatter node, over the elements of the source, in place

Where several values meet at one index, `add`, `mul`, `min` and `max` combine them, on a GPU by atomic operations, in an
order that differs from run to run (as eager's does). Types that have no such operations are collected in a wider one
and rounded once; a sum of a half type is formed in that type where eager's is (`rounds_as_eager`). A plain write leaves
one of the values: on a CPU the last, as eager does.
Eager raises for an index outside of the tensor. A kernel cannot: such an element is not written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, nan
from typing import Any

import torch

from compiler.ir.index import ZERO, Index
from compiler.ir.ops import ops
from compiler.ir.size import Integer, hint, product
from compiler.lowering.advanced_index import index_in
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue
from compiler.lowering.views import wrap

aten = torch.ops.aten

#: GPUs have atomic operations on 32 and 64 bits; in what narrower types are collected. float32 also keeps sums of
#: half types from being rounded at each step.
COLLECTED_IN = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.bool: torch.int32,
    torch.uint8: torch.int32, torch.int8: torch.int32, torch.int16: torch.int32,
}  # fmt: skip

#: How many values of a half type may meet in one element on average for their sum to be formed in that type. bfloat16
#: has eight binary digits: of a sum of 256 equal numbers, the next one changes nothing.
FEW_MEET = 16

Updating = Callable[[Position], Update]


def scatter_into(
    build: Builder, x: TensorValue, sources: tuple[Integer, ...], mode: str, update: Updating, *,
    before: Updating | None = None, dtype: torch.dtype | None = None, label: str = "", is_exact: bool = False,
) -> TensorValue:  # fmt: skip
    """A copy of `x`, changed at one position for each point of a loop over `sources`. `before` is written first, where
    a reduction does not take in what `x` holds. `dtype` is the result's, where it is not that of `x`. `is_exact` says
    that eager forms its sums of half types in float32."""
    dtype = dtype or x.dtype
    is_narrow = mode == "set" or (mode == "add" and not is_exact and rounds_as_eager(build, dtype, x.numel, sources))
    held = dtype if is_narrow else COLLECTED_IN.get(dtype, dtype)
    layout = build.result_layout(x.shape, held)

    def starting(position: Position) -> Any:
        return comparable(x.load(position).to(held), mode)

    def changing(position: Position) -> Update:
        target, value, mask = update(position)
        return target, comparable(value.to(held), mode), mask

    prefix = f"{label}_" if label else ""
    if 0 in sources or 0 in x.shape:
        return build.pointwise(x.shape, dtype, x.load, label=label, materialise=True)
    result = build.pointwise(x.shape, held, starting, label=f"{prefix}start", layout=layout, materialise=True)
    if before is not None:
        result = build.scatter(result, sources, "set", before, label=f"{prefix}identity")
    if held == dtype:
        return build.scatter(result, sources, mode, changing, label=label)
    result = build.scatter(result, sources, mode, changing, label=f"{prefix}{held}".replace("torch.", ""))
    return build.pointwise(x.shape, dtype, result.load, label=label)


def rounds_as_eager(build: Builder, dtype: torch.dtype, targets: Integer, sources: tuple[Integer, ...]) -> bool:
    """Whether values that are added at some of so many `targets` of `dtype` are added in that type.

    Eager's index_add, scatter_add and index_put round a sum of half types each time that a value comes to it. Where the
    GPU adds such types in memory, several neighbours by one operation, so do we, which saves filling a wider tensor and
    reading it again. Where many values meet in one element, float32 is little beside them, and keeps digits that eager
    loses."""
    is_half = dtype in (torch.float16, torch.bfloat16)
    return is_half and build.adds_half_types and hint(product(sources)) <= FEW_MEET * hint(targets)


def comparable(value: Any, mode: str) -> Any:
    """For min and max, every NaN as the one that wins where GPUs compare floats as integers: with the sign bit set it
    is below all numbers, without it above them."""
    dtype = value.dtype
    if mode not in ("min", "max") or not dtype.is_floating_point:
        return value
    winner = ops.copysign(ops.constant(nan, dtype), copysign(1.0, -1 if mode == "min" else 1))
    return ops.where(ops.isnan(value), winner, value)


# --- along one dimension


def along(x: TensorValue, dim: int, index: TensorValue, source: Callable[[Position], Any]) -> Updating:
    """The updates of `scatter`: element p of `source` goes to p, but for the dimension `dim`, where the index says."""
    at = wrap(dim, x.rank) if x.rank else 0

    def update(position: Position) -> Update:
        if not x.rank:
            return (), source(position), None
        chosen, is_inside = index_in(index.load(position), x.shape[at])
        return (*position[:at], chosen, *position[at + 1 :]), source(position), is_inside

    return update


def reader(source: Any, x: TensorValue) -> Callable[[Position], Any]:
    """What a scatter into `x` writes: the elements of a tensor, or one number."""
    if isinstance(source, TensorValue):
        return with_rank_of(x, source).load
    return lambda position: ops.constant(source, x.dtype)


def with_rank_of(x: TensorValue, value: TensorValue) -> TensorValue:
    """A tensor without dimensions beside one that has some is taken as one of size one, and the other way around; one
    without elements may be of any rank."""
    is_empty = 0 in value.shape
    if value.rank == x.rank or (is_empty and not x.rank):
        return value
    return value.view((0 if is_empty else 1,) * x.rank, lambda position: (ZERO,) * value.rank)


#: Writes to a row about each of which every element of the row asks whether it is the one. With more of them, filling
#: the result first and writing at the indices is less work.
FEW_WRITES = 4


@lowers(aten.scatter.value, aten.scatter.src)
def scatter(build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any) -> TensorValue:
    """Where each row is written at one index, or one of a constant at few, the other way around: every element asks
    whether it is such an index, so that the node is pointwise and fuses with what follows."""
    new, index = reader(value, x), with_rank_of(x, index)
    at = wrap(dim, x.rank) if x.rank else 0
    count = indices_per_row(x, at, index)
    if count is None or (count > 1 and x.buffer is not None):
        return scatter_into(build, x, index.shape, "set", along(x, dim, index, new))

    def written(old: Any, new: Any) -> Any:
        return new

    return build.pointwise(x.shape, x.dtype, at_few_indices(x, at, index, count, new, written))


def indices_per_row(x: TensorValue, at: int, index: TensorValue) -> int | None:
    """How many indices each row of `x` along the dimension `at` is written at, where all rows are and they are few."""
    count = index.shape[at] if x.rank else 0
    is_of_whole_rows = index.shape == (*x.shape[:at], count, *x.shape[at + 1 :])
    return count if is_of_whole_rows and isinstance(count, int) and 0 < count <= FEW_WRITES else None


def at_few_indices(
    x: TensorValue, at: int, index: TensorValue, count: int, source: Callable[[Position], Any],
    joined: Callable[[Any, Any], Any],
) -> Callable[[Position], Any]:  # fmt: skip
    """The element of `x` after its rows were changed at `count` indices each, one after the other."""

    def element(position: Position) -> Any:
        value, here = x.load(position), ops.index_value(position[at])
        for number in range(count):
            one = (*position[:at], Index.number(number), *position[at + 1 :])
            is_here = index.load(one).to(torch.int64) == here
            value = ops.where(is_here, joined(value, source(one)), value)
        return value

    return element
