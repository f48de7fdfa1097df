"""Pooling to a wanted size: windows whose places are computed, and are of unlike sizes.

adaptive     window i of n over m elements is  [floor(i*m / n), ceil((i + 1)*m / n))
fractional   windows of one size, whose starts a random number shifts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import product
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, below
from compiler.lowering.loop_builder import Update
from compiler.lowering.pooling import NOWHERE, along, lowest_of
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import index_in, scatter_into
from compiler.lowering.values import Position, TensorValue, constant, fixed

aten = torch.ops.aten


class AdaptiveWindows:
    """The windows over the last `rank` dimensions of an image."""

    def __init__(self, image: Sequence[Any], pooled: Sequence[Any]) -> None:
        self.image = tuple(fixed(size) for size in image)
        self.pooled = tuple(fixed(size) for size in pooled)

    def start(self, axis: int, number: Index) -> Index:
        return number * self.image[axis] // self.pooled[axis]

    def end(self, axis: int, number: Index) -> Index:
        return ((number + 1) * self.image[axis] + self.pooled[axis] - 1) // self.pooled[axis]

    @property
    def most_elements(self) -> tuple[int, ...]:
        """The size of the largest window, by dimension."""
        return tuple(most_in_common(m, n) for m, n in zip(self.image, self.pooled, strict=True))

    @property
    def most_windows(self) -> tuple[int, ...]:
        """How many windows hold one element at most, by dimension."""
        return tuple(most_in_common(n, m) for m, n in zip(self.image, self.pooled, strict=True))

    def element(self, window: Position, place: Position) -> tuple[Position, Any]:
        """The place in the image of an element of a window; and whether the window is so large (None if all are)."""
        found = tuple(self.start(axis, number) + place[axis] for axis, number in enumerate(window))
        return found, all_of([
            ops.lt(ops.index_value(found[axis]), ops.index_value(self.end(axis, number)))
            for axis, number in enumerate(window) if self.image[axis] % self.pooled[axis]
        ])  # fmt: skip

    def window_over(self, place: Position, step: Position) -> tuple[Position, Any]:
        """The window that is `step` behind the first one that holds an element; and whether it holds it too."""
        found = tuple(index * n // m + s for index, n, m, s in zip(place, self.pooled, self.image, step, strict=True))
        conditions = []
        for axis, (number, index) in enumerate(zip(found, place, strict=True)):
            if self.image[axis] % self.pooled[axis] == 0:
                continue
            conditions.append(ops.le(ops.index_value(self.start(axis, number)), ops.index_value(index)))
            if number.bounds[1] >= self.pooled[axis]:
                conditions.append(below(number, self.pooled[axis]))
        return found, all_of(conditions)

    def size(self, window: Position) -> Any:
        """How many elements a window has."""
        count = None
        for axis, number in enumerate(window):
            size = ops.index_value(self.end(axis, number) - self.start(axis, number))
            count = size if count is None else ops.mul(count, size)
        return count


def most_in_common(size: int, parts: int) -> int:
    """The size of the largest of `parts` windows over `size` elements."""
    if not parts:
        return 0
    return max((-(-(i + 1) * size // parts)) - i * size // parts for i in range(parts))


def _windows_of(build: Builder, x: TensorValue, output_size: Any, rank: int) -> AdaptiveWindows:
    result = build.eager
    return AdaptiveWindows(x.shape[-rank:], (result[0] if isinstance(result, list | tuple) else result).shape[-rank:])


def _average(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(build: Builder, x: TensorValue, output_size: Any) -> TensorValue:
        windows = _windows_of(build, x, output_size, rank)
        compute = compute_dtype(x.dtype)

        def element(position: Position, reduced: Position) -> Any:
            place, inside = windows.element(position[-rank:], reduced)
            total = ops.reduce("sum", x.load((*position[:-rank], *place), inside))
            return ops.truediv(total, ops.to_dtype(windows.size(position[-rank:]), compute))

        return build.reduction((*x.shape[:-rank], *windows.pooled), x.dtype, windows.most_elements, element)


def _average_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(build: Builder, gradient: TensorValue, x: TensorValue) -> TensorValue:
        windows = AdaptiveWindows(x.shape[-rank:], gradient.shape[-rank:])
        compute = compute_dtype(x.dtype)

        def element(position: Position, step: Position) -> Any:
            window, holds = windows.window_over(position[-rank:], step)
            value = gradient.load((*position[:-rank], *window), holds)
            share = ops.truediv(value, ops.to_dtype(windows.size(window), compute))
            return ops.reduce("sum", share if holds is None else ops.where(holds, share, ops.constant(0, compute)))

        return build.reduction(x.shape, x.dtype, windows.most_windows, element)


Find = Callable[[Position, Position], tuple[Position, Any]]


def _largest_of(
    build: Builder, x: TensorValue, shape: tuple[Any, ...], sizes: tuple[int, ...], find: Find
) -> tuple[TensorValue, TensorValue]:
    """Two nodes: the largest elements of windows, and their places in the image as ATen numbers them. `find` gives
    the place of an element of a window, by the position of the result, and whether there is such an element."""
    rank = len(sizes)

    def value(position: Position, reduced: Position) -> Any:
        place, inside = find(position, reduced)
        loaded = x.load((*position[:-rank], *place), inside)
        return loaded if inside is None else ops.where(inside, loaded, lowest_of(x.dtype))

    def index(position: Position, reduced: Position) -> Any:
        place, inside = find(position, reduced)
        number = ops.index_value(flatten(place, x.shape[-rank:]))
        if inside is not None:
            number = ops.where(inside, number, ops.constant(NOWHERE, torch.int64))
        return ops.reduce("argmax", value(position, reduced), number)

    largest = build.reduction(
        shape, x.dtype, sizes, lambda position, reduced: ops.reduce("max", value(position, reduced))
    )
    return largest, build.reduction(shape, torch.int64, sizes, index, label="indices")


def _largest(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(build: Builder, x: TensorValue, output_size: Any) -> tuple[TensorValue, TensorValue]:
        windows = _windows_of(build, x, output_size, rank)
        return _largest_of(
            build, x, (*x.shape[:-rank], *windows.pooled), windows.most_elements,
            lambda position, reduced: windows.element(position[-rank:], reduced),
        )  # fmt: skip


def _largest_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(build: Builder, gradient: TensorValue, x: TensorValue, indices: TensorValue) -> TensorValue:
        windows = AdaptiveWindows(x.shape[-rank:], gradient.shape[-rank:])
        compute = compute_dtype(x.dtype)

        def element(position: Position, step: Position) -> Any:
            window, holds = windows.window_over(position[-rank:], step)
            place = (*position[:-rank], *window)
            here = ops.index_value(flatten(position[-rank:], x.shape[-rank:]))
            is_largest = ops.eq(indices.load(place, holds), here)
            chosen = is_largest if holds is None else ops.logical_and(holds, is_largest)
            return ops.reduce("sum", ops.where(chosen, gradient.load(place, holds), ops.constant(0, compute)))

        return build.reduction(x.shape, x.dtype, windows.most_windows, element)


def _fractional(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, x: TensorValue, kernel_size: Any, output_size: Any, random_samples: TensorValue
    ) -> tuple[TensorValue, TensorValue]:
        kernel, pooled = along(kernel_size, rank), along(output_size, rank)
        image = tuple(fixed(size) for size in x.shape[-rank:])
        batch = x.shape[:-rank]

        def start(position: Position, axis: int) -> Index:
            last = image[axis] - kernel[axis]
            # ATen's random numbers are in the order of the dimensions in 3d, and the other way around in 2d.
            number = Index.number(axis if rank == 3 else rank - 1 - axis)
            before = position[:-rank] if len(batch) == 2 else (Index.number(0), *position[:-rank])
            sample = random_samples.load((*before, number))
            return _fractional_start(position[axis - rank], sample, last, pooled[axis], compute_dtype(x.dtype))

        def find(position: Position, reduced: Position) -> tuple[Position, Any]:
            return tuple(start(position, axis) + reduced[axis] for axis in range(rank)), None

        return _largest_of(build, x, (*batch, *pooled), kernel, find)


def _fractional_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, output_size: Any, indices: TensorValue
    ) -> TensorValue:
        """Windows overlap where a random number says, so the places of the largest elements are written to."""
        image = x.shape[-rank:]

        def update(position: Position) -> Update:
            place, is_inside = index_in(indices.load(position), product(image))
            return (*position[:-rank], *unflatten(place, image)), gradient.load(position), is_inside

        return scatter_into(build, constant(0, x.shape, x.dtype), gradient.shape, "add", update)


def _fractional_start(number: Index, sample: Any, last: int, pooled: int, compute: torch.dtype) -> Index:
    """Where window `number` of `pooled` starts: at `last` for the last one."""
    if pooled == 1:
        return Index.number(last)
    alpha = ops.constant(last / (pooled - 1), compute)
    place = ops.index_value(number, compute)
    shifted = ops.trunc(ops.mul(ops.add(place, sample), alpha))
    found = ops.to_dtype(ops.sub(shifted, ops.trunc(ops.mul(sample, alpha))), torch.int64)
    is_last = ops.eq(ops.index_value(number), ops.constant(pooled - 1, torch.int64))
    # A rounded product must not lead out of the image.
    inside = ops.minimum(found, ops.constant(last, torch.int64))
    index: Index = ops.indirect(ops.where(is_last, ops.constant(last, torch.int64), inside), last + 1)
    return index


for _rank in (2, 3):
    _average(_rank, getattr(aten, f"_adaptive_avg_pool{_rank}d"))
    _average_backward(_rank, getattr(aten, f"_adaptive_avg_pool{_rank}d_backward"))
    _largest(_rank, getattr(aten, f"adaptive_max_pool{_rank}d"))
    _largest_backward(_rank, getattr(aten, f"adaptive_max_pool{_rank}d_backward"))
    _fractional(_rank, getattr(aten, f"fractional_max_pool{_rank}d"))
    _fractional_backward(_rank, getattr(aten, f"fractional_max_pool{_rank}d_backward"))
