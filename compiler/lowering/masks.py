"""Masks that choose as many elements as they are true: the rank of each true place, and where those places lie.

    mask    0 1 1 0 1                          x.masked_scatter(mask, s):  where(mask, s[rank], x)
    rank    . 0 1 . 2      a running sum       index_put with a mask and values: the same
    places  1 2 4 5 5      a scatter           a mask beside other indices: x[places, j]

What has a number of elements that only the mask tells (`masked_select`, `nonzero`) has no shape before it runs and is a
call of PyTorch's own; here is what has a shape without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import Integer, hint
from compiler.lowering.advanced_index import TRUTHS, AdvancedIndex, index_in
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast, constant

aten = torch.ops.aten


def truth(mask: TensorValue, position: Position) -> Any:
    """Whether an element is not zero."""
    return mask.load(position).to(torch.bool)


def flattened(x: TensorValue) -> TensorValue:
    """The elements in row-major order."""
    return x.view((x.numel,), lambda position: unflatten(position[0], x.shape))


def ranks(build: Builder, mask: TensorValue) -> TensorValue:
    """For every true place the number of true places before it in row-major order: int64, of the mask's shape."""
    if not mask.rank or not mask.numel:
        return constant(0, mask.shape, torch.int64)
    flat = flattened(mask)

    def element(position: Position) -> Any:
        so_far = ops.scan("sum", truth(flat, position).to(torch.int64))
        return so_far - 1

    counted = build.scan(flat.shape, torch.int64, 0, element, label="ranks")
    return counted.view(mask.shape, lambda position: (flatten(position, mask.shape),))


def places_of(build: Builder, mask: TensorValue) -> TensorValue:
    """The true places in row-major order, each counted through the mask; behind the last one the mask's size."""
    place_of, count = ranks(build, mask), mask.numel

    def update(position: Position) -> Update:
        place: Index = ops.indirect(place_of.load(position), count)
        return (place,), ops.index_value(flatten(position, mask.shape)), truth(mask, position)

    return scatter_into(build, constant(count, (count,), torch.int64), mask.shape, "set", update, label="places")


def with_indices_of_masks(
    build: Builder, x: TensorValue, indices: Sequence[TensorValue | None], values: TensorValue
) -> list[TensorValue | None]:
    """The indices with one tensor for each dimension of a mask: where it is true. Those of one mask are as many as the
    other indices or the values say, else as many as the mask has places, the last of them outside of `x`."""
    count = _count_of_places(x, indices, values)
    result: list[TensorValue | None] = []
    for index in indices:
        if index is None or index.dtype not in TRUTHS:
            result.append(index)
            continue
        if not index.rank:
            raise CannotLower("a mask without dimensions stands beside other indices")
        wanted = index.numel if count is None else count
        if hint(wanted) > hint(index.numel):
            raise CannotLower("it writes more values than its mask has places")
        result += _digits(build, places_of(build, index), wanted, index.shape)
    return result


def _count_of_places(x: TensorValue, indices: Sequence[TensorValue | None], values: TensorValue) -> Integer | None:
    """How many places each mask has, as far as the shapes tell; None where every value stands for all."""
    stand_in = constant(0, (1,), torch.int64)
    tensors: list[TensorValue | None] = []
    for index in indices:
        is_mask = index is not None and index.dtype in TRUTHS
        tensors += [stand_in] * index.rank if index is not None and is_mask else [index]
    chosen = AdvancedIndex.of(x, tensors)
    last = chosen.at + chosen.common - 1
    size = chosen.shape[last]
    in_values = last - len(chosen.shape) + values.rank
    if size == 1 and in_values >= 0:
        size = values.shape[in_values]
    if size != 1:
        return size
    masks = [index for index in indices if index is not None and index.dtype in TRUTHS]
    return None if len(masks) == 1 else min((mask.numel for mask in masks), key=hint)


def _digits(build: Builder, places: TensorValue, count: Integer, shape: tuple[Integer, ...]) -> list[TensorValue]:
    """Places counted through a tensor of `shape` as one index for each dimension. What lies behind the last place has a
    first digit that lies outside."""
    result: list[TensorValue] = []
    inner = places.shape[0]
    for dim, size in enumerate(shape):
        outer, inner = inner, inner // size

        def element(position: Position, dim: int = dim, outer: Integer = outer, inner: Integer = inner) -> Any:
            value = places.load(position)
            if dim:
                value = ops.remainder(value, outer)
            return ops.truncdiv(value, inner) if inner != 1 else value

        result.append(build.pointwise((count,), torch.int64, element, label=f"places_{dim}"))
    return result


@lowers(aten.masked_scatter.default)
def masked_scatter(build: Builder, x: TensorValue, mask: TensorValue, source: TensorValue) -> TensorValue:
    shape, given = build.eager.shape, flattened(source)
    x, mask = broadcast(x, shape), broadcast(mask, shape)
    if not source.numel:
        return build.pointwise(shape, x.dtype, x.load)
    place_of = ranks(build, mask)

    def element(position: Position) -> Any:
        place, is_given = index_in(place_of.load(position), source.numel)
        chosen = truth(mask, position) & is_given
        return ops.where(chosen, given.load((place,), chosen), x.load(position))

    return build.pointwise(shape, x.dtype, element)


@lowers(aten.masked_scatter_backward.default)
def masked_scatter_backward(
    build: Builder, gradient: TensorValue, mask: TensorValue, sizes: Sequence[Integer]
) -> TensorValue:
    """The gradient of the source: what was written gets that of the place that it was written to, the rest none."""
    shape, mask = tuple(sizes), broadcast(mask, gradient.shape)
    place_of, zeros = ranks(build, mask), constant(0, shape, gradient.dtype)

    def update(position: Position) -> Update:
        place, is_inside = index_in(place_of.load(position), zeros.numel)
        chosen = truth(mask, position) & is_inside
        return unflatten(place, shape), gradient.load(position), chosen

    return scatter_into(build, zeros, mask.shape, "set", update)


@lowers(aten.nonzero_static.default)
def nonzero_static(build: Builder, x: TensorValue, *, size: Integer, fill_value: int = -1) -> TensorValue:
    """The positions of the first `size` elements that are not zero, one a row; rows without one hold `fill_value`."""
    place_of, start = ranks(build, x), constant(fill_value, (size, x.rank), torch.int64)

    def update(position: Position) -> Update:
        *of_x, column = position
        row, is_wanted = index_in(place_of.load(tuple(of_x)), size)
        value = ops.index_value(of_x[0])
        for dim in range(1, x.rank):
            is_here = ops.index_value(column) == dim
            value = ops.where(is_here, ops.index_value(of_x[dim]), value)
        return (row, column), value, truth(x, tuple(of_x)) & is_wanted

    return scatter_into(build, start, (*x.shape, x.rank), "set", update)
