"""Views: each is a formula from its position to a position of what it views. None becomes a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import torch

from compiler.ir.index import MOST_KEPT, ZERO, Index
from compiler.ir.nodes import Layout
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import Integer, hint, product
from compiler.lowering.builder import Builder
from compiler.lowering.channels_last import lies_alike
from compiler.lowering.eager import EagerTensor
from compiler.lowering.registry import lowers
from compiler.lowering.strides import is_dense
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast, fixed, of_buffer

aten = torch.ops.aten
#: What torch writes for the end of a slice that has none.
LAST = 2**63 - 1


def wrap(dim: int, rank: int) -> int:
    """A dimension counted from the end as one counted from the start."""
    return dim + rank if dim < 0 else dim


def wrap_index(index: Integer, size: Integer) -> Integer:
    """An index counted from the end as one counted from the start."""
    return index + size if index < 0 else index


def wrap_all(dims: Any, rank: int) -> list[int]:
    """Every dimension where `dims` is None or empty, else those that it names."""
    if dims is None or rank == 0 or (isinstance(dims, list | tuple) and not dims):
        return list(range(rank))
    return [wrap(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims)]


@lowers(aten.view.default, aten._unsafe_view, aten.reshape, aten.view_copy.default, aten._reshape_alias)
def view(build: Builder, x: TensorValue, size: Sequence[Integer], *_: Any) -> TensorValue:
    known = product(s for s in size if s != -1)
    shape = tuple(x.numel // known if s == -1 else s for s in size)
    if isinstance(build.eager, EagerTensor) and len(build.eager.shape) == len(shape):
        shape = build.eager.shape
    if shape == x.shape:
        return x
    layout = x.layout()
    stride = None if layout is None or x.buffer is None else strides_of_view(layout.shape, layout.stride, shape)
    if layout is not None and stride is not None:
        return TensorValue(shape, x.dtype, x.buffer, replace(layout, shape=shape, stride=stride).index)
    return x.view(shape, lambda position: _regroup(position, shape, x.shape))


def strides_of_view(
    shape: Sequence[Integer], stride: Sequence[Integer], new_shape: Sequence[Integer]
) -> tuple[int, ...] | None:
    """The strides under which a strided tensor has `new_shape`, or None where none do, or where sizes are no numbers.

        (4, 5, 4) with strides (20, 4, 1)  is  80 elements at step 1;  (16, 1, 5) of them has strides (5, 5, 1)

    Dimensions that follow each other in memory join into runs; the new ones are cut off the runs from the last."""
    numbers = (*shape, *stride, *new_shape)
    if not all(isinstance(number, int) for number in numbers) or 0 in new_shape:
        return None
    runs: list[tuple[int, int]] = []
    for size, step in [(fixed(size), fixed(step)) for size, step in zip(shape, stride, strict=True) if size != 1]:
        if runs and runs[-1][1] == step * size:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    result: list[int] = []
    for size in map(fixed, reversed(new_shape)):
        count, step = runs[-1] if runs else (1, 1)
        if count % size:
            return None
        result.append(step)
        if size > 1:
            runs[-1:] = [(count // size, step * size)] if count > size else []
    return None if runs else tuple(reversed(result))


@lru_cache(maxsize=MOST_KEPT)
def _regroup(position: Position, shape: tuple[Integer, ...], old: tuple[Integer, ...]) -> Position:
    """The point of `old` with the same row-major number as `position` of `shape`.

    Sizes are split into the smallest groups of equal products, so a dimension that the view leaves alone stays free of
    division whatever happens beside it."""
    result: list[Index] = []
    new_at = old_at = 0
    while old_at < len(old):
        new_end, old_end = new_at + 1, old_at + 1
        while new_end <= len(shape) and product(shape[new_at:new_end]) != product(old[old_at:old_end]):
            if hint(product(shape[new_at:new_end])) < hint(product(old[old_at:old_end])):
                new_end += 1
            else:
                old_end += 1
                if old_end > len(old):
                    break
        if new_end > len(shape) or old_end > len(old):
            new_end, old_end = len(shape), len(old)
        flat = flatten(position[new_at:new_end], shape[new_at:new_end])
        result += unflatten(flat, old[old_at:old_end])
        new_at, old_at = new_end, old_end
    return tuple(result)


@lowers(aten.permute, aten.permute_copy)
def permute(build: Builder, x: TensorValue, dims: Sequence[int]) -> TensorValue:
    order = wrap_all(dims, x.rank) if dims else []
    axes = [order.index(dim) for dim in range(x.rank)]
    return x.view(tuple(x.shape[dim] for dim in order), lambda position: tuple(position[axis] for axis in axes))


@lowers(aten.expand, aten.expand_copy)
def expand(build: Builder, x: TensorValue, size: Sequence[Integer], *, implicit: bool = False) -> TensorValue:
    added = len(size) - x.rank
    shape = tuple(x.shape[axis - added] if s == -1 else s for axis, s in enumerate(size))
    return broadcast(x, shape)


@lowers(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze_copy)
def squeeze(build: Builder, x: TensorValue, dim: Any = None) -> TensorValue:
    dims = list(range(x.rank)) if dim is None else [wrap(d, x.rank) for d in ([dim] if isinstance(dim, int) else dim)]
    kept = [axis for axis in range(x.rank) if not (axis in dims and x.shape[axis] == 1)]
    axes = {axis: new for new, axis in enumerate(kept)}
    return x.view(
        tuple(x.shape[axis] for axis in kept),
        lambda position: tuple(position[axes[axis]] if axis in axes else ZERO for axis in range(x.rank)),
    )


@lowers(aten.unsqueeze, aten.unsqueeze_copy)
def unsqueeze(build: Builder, x: TensorValue, dim: int) -> TensorValue:
    at = wrap(dim, x.rank + 1)
    return x.view((*x.shape[:at], 1, *x.shape[at:]), lambda position: (*position[:at], *position[at + 1 :]))


@lowers(aten.select.int, aten.select_copy.int)
def select(build: Builder, x: TensorValue, dim: int, index: Integer) -> TensorValue:
    at = wrap(dim, x.rank)
    chosen = Index.number(wrap_index(index, x.shape[at]))
    return x.view((*x.shape[:at], *x.shape[at + 1 :]), lambda position: (*position[:at], chosen, *position[at:]))


def slice_bounds(size: Integer, start: Integer | None, end: Integer | None, step: int) -> tuple[Integer, Integer]:
    """The first element of a slice and how many it has, by Python's rules."""
    if isinstance(size, int) and isinstance(start, int | None) and isinstance(end, int | None):
        chosen = range(size)[slice(start, end, step)]
        return chosen.start, len(chosen)
    first = wrap_index(start or 0, size)
    last = size if end is None or end == LAST else wrap_index(end, size)
    first, last = (size if bound > size else bound for bound in (first, last))
    return first, (last - first + (step - 1)) // step


@lowers(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(
    build: Builder, x: TensorValue, dim: int = 0, start: Integer | None = None, end: Integer | None = None,
    step: int = 1,
) -> TensorValue:  # fmt: skip
    at = wrap(dim, x.rank)
    first, count = slice_bounds(x.shape[at], start, end, step)
    return _cut(x, at, first, count, step)


def _cut(x: TensorValue, at: int, first: Integer, count: Integer, step: int = 1) -> TensorValue:
    return x.view(
        (*x.shape[:at], count, *x.shape[at + 1 :]),
        lambda position: (*position[:at], position[at] * step + first, *position[at + 1 :]),
    )


@lowers(aten.split.Tensor, aten.split_copy.Tensor, aten.unsafe_split.Tensor)
def split(build: Builder, x: TensorValue, split_size: Integer, dim: int = 0) -> tuple[TensorValue, ...]:
    """Pieces of one size, the last one perhaps smaller; how many there are is what eager mode says."""
    at = wrap(dim, x.rank)
    return split_with_sizes(build, x, [piece.shape[at] for piece in build.eager], dim)


@lowers(
    aten.split_with_sizes, aten.split_with_sizes_copy, aten.unsafe_split_with_sizes,
    aten.split.sizes,
)  # fmt: skip
def split_with_sizes(
    build: Builder, x: TensorValue, split_sizes: Sequence[Integer], dim: int = 0
) -> tuple[TensorValue, ...]:
    at, starts = wrap(dim, x.rank), accumulate(split_sizes, initial=0)
    return tuple(_cut(x, at, start, size) for start, size in zip(starts, split_sizes, strict=False))


@lowers(aten.alias, aten.alias_copy, aten.detach, aten.detach_copy, aten.lift_fresh, aten.lift_fresh_copy, aten.lift)
def alias(build: Builder, x: TensorValue) -> TensorValue:
    return x


@lowers(aten.flip)
def flip(build: Builder, x: TensorValue, dims: Sequence[int]) -> TensorValue:
    flipped = {wrap(dim, x.rank) for dim in dims}
    return x.view(
        x.shape,
        lambda position: tuple(
            index * -1 + (size - 1) if axis in flipped else index
            for axis, (index, size) in enumerate(zip(position, x.shape, strict=True))
        ),
    )


@lowers(aten.repeat)
def repeat(build: Builder, x: TensorValue, repeats: Sequence[int]) -> TensorValue:
    added = len(repeats) - x.rank
    shape = tuple(count * size for count, size in zip(repeats, (1,) * added + x.shape, strict=True))
    return x.view(
        shape,
        lambda position: tuple(
            ZERO if size in (0, 1) else index % size for index, size in zip(position[added:], x.shape, strict=True)
        ),
    )


@lowers(aten.diagonal, aten.diagonal_copy)
def diagonal(build: Builder, x: TensorValue, offset: int = 0, dim1: int = 0, dim2: int = 1) -> TensorValue:
    row, column = wrap(dim1, x.rank), wrap(dim2, x.rank)
    rows, columns = x.shape[row], x.shape[column]
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    others = [axis for axis in range(x.rank) if axis not in (row, column)]

    def position_of(position: Position) -> Position:
        old = dict(zip(others, position, strict=False))
        old[row] = position[-1] + max(-offset, 0)
        old[column] = position[-1] + max(offset, 0)
        return tuple(old[axis] for axis in range(x.rank))

    return x.view((*(x.shape[axis] for axis in others), count), position_of)


@lowers(aten.unfold, aten.unfold_copy)
def unfold(build: Builder, x: TensorValue, dimension: int, size: int, step: int) -> TensorValue:
    if not x.rank:
        return x.view((size,), lambda position: ())
    at = wrap(dimension, x.rank)
    count = (x.shape[at] - size) // step + 1
    return x.view(
        (*x.shape[:at], count, *x.shape[at + 1 :], size),
        lambda position: (*position[:at], position[at] * step + position[-1], *position[at + 1 : -1]),
    )


@lowers(aten.as_strided, aten.as_strided_copy)
def as_strided(
    build: Builder, x: TensorValue, size: Sequence[Integer], stride: Sequence[Integer],
    storage_offset: Integer | None = None,
) -> TensorValue:  # fmt: skip
    """Strides speak of eager's storage: an offset in it is turned into a position of `x`, wherever `x` lies here."""
    fake, layout = build.eager_of.get(id(x)), x.layout()
    is_alike = fake is not None and layout is not None and lies_alike(x.shape, layout.stride, fake.stride())
    if fake is not None and layout is not None and x.buffer is not None and is_alike:
        shift = 0 if storage_offset is None else storage_offset - fake.storage_offset()
        whole = build.graph.buffers[x.buffer]
        viewed = Layout(tuple(size), tuple(stride), x.dtype, layout.offset + shift)
        if viewed.offset >= 0 and viewed.storage_numel <= whole.storage_numel:
            return of_buffer(x.buffer, viewed)
    if fake is None or not is_dense(x.shape, fake.stride()):
        raise CannotLower("it views the storage of a tensor that has gaps")
    start = 0 if storage_offset is None else storage_offset - fake.storage_offset()
    viewed = Layout(tuple(size), tuple(stride), x.dtype, start)
    if start < 0 or viewed.storage_numel > x.numel:
        raise CannotLower("it views memory outside of its tensor")
    pairs = list(zip(x.shape, fake.stride(), strict=True))

    def position_of(position: Position) -> Position:
        offset = viewed.index(position)
        return tuple(ZERO if size == 1 else (offset // step) % size for size, step in pairs)

    return x.view(viewed.shape, position_of)
