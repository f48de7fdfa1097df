"""Reads at computed indices (gather, index), and tensors assembled from others (cat, pad, slices)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

import torch

from compiler.fx.notes import UPDATES_INPUT
from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer, is_below
from compiler.lowering.advanced_index import TRUTHS, AdvancedIndex, wrapped_index
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast
from compiler.lowering.views import slice_bounds, unsqueeze, wrap, wrap_index

aten = torch.ops.aten


@lowers(aten.gather)
def gather(build: Builder, x: TensorValue, dim: int, index: TensorValue, sparse_grad: bool = False) -> TensorValue:
    if not x.rank:
        return build.pointwise(index.shape, x.dtype, lambda position: x.load(()))
    at = wrap(dim, x.rank)

    def element(position: Position) -> Any:
        chosen = wrapped_index(index.load(position), x.shape[at])
        return x.load((*position[:at], chosen, *position[at + 1 :]))

    return build.pointwise(index.shape, x.dtype, element)


@lowers(aten.index_select)
def index_select(build: Builder, x: TensorValue, dim: int, index: TensorValue) -> TensorValue:
    if not x.rank:
        return build.pointwise((), x.dtype, lambda position: x.load(()))
    at = wrap(dim, x.rank)

    def element(position: Position) -> Any:
        chosen = index.load((position[at],) if index.rank else ())
        return x.load((*position[:at], wrapped_index(chosen, x.shape[at]), *position[at + 1 :]))

    return build.pointwise((*x.shape[:at], index.numel, *x.shape[at + 1 :]), x.dtype, element)


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index_(build: Builder, x: TensorValue, indices: Sequence[TensorValue | None]) -> TensorValue:
    if any(index is not None and index.dtype in TRUTHS for index in indices):
        raise CannotLower("its result has as many elements as its mask is true")
    chosen = AdvancedIndex.of(x, indices)

    def element(position: Position) -> Any:
        return x.load(chosen.position_in(position, lambda dim, value: wrapped_index(value, x.shape[dim])))

    return build.pointwise(chosen.shape, x.dtype, element)


# --- put together from parts


def at_least(index: Index, bound: Integer) -> Any:
    return ops.index_value(index) >= bound


def below(index: Index, bound: Integer) -> Any:
    return ops.index_value(index) < bound


def all_of(conditions: Sequence[Any]) -> Any:
    """Whether all hold; None where there are none."""
    return reduce(and_, conditions) if conditions else None


def inside_of(position: Sequence[Index], sizes: Sequence[Integer]) -> Any:
    """Whether a position lies in a tensor of these sizes, or None where every such position does."""
    conditions = [at_least(index, 0) for index in position if not is_below(-1, index.bounds[0])]
    conditions += [below(i, size) for i, size in zip(position, sizes, strict=True) if not is_below(i.bounds[1], size)]
    return all_of(conditions)


@lowers(aten.cat)
def cat(build: Builder, tensors: Sequence[TensorValue], dim: int = 0) -> TensorValue:
    """One node that chooses by the position; each part is read only where it is the chosen one."""
    dtype: torch.dtype = build.eager.dtype
    shape = build.eager.shape
    # Eager skips tensors of shape (0,) whatever the shape of the others.
    parts = [tensor for tensor in tensors if tensor.numel != 0]
    at = wrap(dim, len(shape))
    starts = [sum(part.shape[at] for part in parts[:number]) for number in range(len(parts))]

    def element(position: Position) -> Any:
        result = None
        for part, start in reversed(list(zip(parts, starts, strict=True))):
            is_above = [at_least(position[at], start)] if start != 0 else []
            is_below: list[Any] = [] if result is None else [below(position[at], start + part.shape[at])]
            chosen = all_of([*is_above, *is_below])
            inner = (*position[:at], position[at] - start, *position[at + 1 :])
            value = part.load(inner, chosen).to(dtype)
            result = ops.where(is_below[0], value, result) if is_below else value
        return result if result is not None else ops.constant(0, dtype)

    return build.pointwise(shape, dtype, element)


@lowers(aten.stack)
def stack(build: Builder, tensors: Sequence[TensorValue], dim: int = 0) -> TensorValue:
    at = wrap(dim, tensors[0].rank + 1)
    return cat(build, [unsqueeze(build, tensor, at) for tensor in tensors], at)


@lowers(aten.constant_pad_nd)
def constant_pad_nd(build: Builder, x: TensorValue, pad: Sequence[int], value: Any = 0) -> TensorValue:
    befores, afters = [0] * x.rank, [0] * x.rank
    for axis in range(len(pad) // 2):
        befores[x.rank - 1 - axis], afters[x.rank - 1 - axis] = pad[2 * axis], pad[2 * axis + 1]
    shape = tuple(b + size + a for b, size, a in zip(befores, x.shape, afters, strict=True))

    def element(position: Position) -> Any:
        old = tuple(index - before for index, before in zip(position, befores, strict=True))
        conditions = [at_least(index, 0) for index, before in zip(old, befores, strict=True) if before > 0]
        conditions += [below(i, size) for i, size, after in zip(old, x.shape, afters, strict=True) if after > 0]
        inside = all_of(conditions)
        if inside is None:
            return x.load(old)
        return ops.where(inside, x.load(old, inside), value)

    return build.pointwise(shape, x.dtype, element)


# --- one tensor written into another


@lowers(aten.select_scatter)
def select_scatter(build: Builder, x: TensorValue, src: TensorValue, dim: int, index: int) -> TensorValue:
    at = wrap(dim, x.rank)
    chosen = wrap_index(index, x.shape[at])
    return slice_scatter(build, x, unsqueeze(build, src, at), at, chosen, chosen + 1)


@lowers(aten.slice_scatter)
def slice_scatter(
    build: Builder, x: TensorValue, src: TensorValue, dim: int = 0, start: Integer | None = None,
    end: Integer | None = None, step: int = 1,
) -> TensorValue:  # fmt: skip
    at = wrap(dim, x.rank)
    first, count = slice_bounds(x.shape[at], start, end, step)
    source = broadcast(src, (*x.shape[:at], count, *x.shape[at + 1 :]))
    if build.node is not None and build.node.meta.get(UPDATES_INPUT) and count != x.shape[at]:
        return _slice_update(build, x, source, at, first, step)

    def element(position: Position) -> Any:
        distance = position[at] - first
        conditions = [at_least(distance, 0)] if first != 0 else []
        if first + (count - 1) * step + 1 != x.shape[at]:
            conditions.append(below(distance, (count - 1) * step + 1))
        if step > 1:
            conditions.append(ops.index_value(distance % step) == 0)
        written = (*position[:at], distance // step, *position[at + 1 :])
        inside = all_of(conditions)
        if inside is None:
            return source.load(written).to(x.dtype)
        return ops.where(inside, source.load(written, inside).to(compute_dtype(x.dtype)), x.load(position))

    return build.pointwise(x.shape, x.dtype, x.load if count == 0 else element)


def _slice_update(
    build: Builder, x: TensorValue, source: TensorValue, at: int, first: Integer, step: int
) -> TensorValue:  # fmt: skip
    """A scatter, for `in_place.py` to make it one of the input."""
    start = build.pointwise(x.shape, x.dtype, x.load, label="start", materialise=True)

    def update(position: Position) -> tuple[Position, Any, Any]:
        target = (*position[:at], position[at] * step + first, *position[at + 1 :])
        return target, source.load(position).to(compute_dtype(x.dtype)), None

    return build.scatter(start, source.shape, "set", update)


@lowers(aten.diagonal_scatter)
def diagonal_scatter(
    build: Builder, x: TensorValue, src: TensorValue, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorValue:
    row, column = wrap(dim1, x.rank), wrap(dim2, x.rank)

    def element(position: Position) -> Any:
        distance = ops.index_value(position[column] - position[row])
        is_diagonal = distance == offset
        along = position[row] if offset >= 0 else position[column]
        others = (index for axis, index in enumerate(position) if axis not in (row, column))
        new = src.load((*others, along), is_diagonal).to(compute_dtype(x.dtype))
        return ops.where(is_diagonal, new, x.load(position))

    return build.pointwise(x.shape, x.dtype, x.load if src.numel == 0 else element)
