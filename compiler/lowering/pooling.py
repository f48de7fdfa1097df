"""Pooling: a reduction over a window that slides over the last two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.ops import compute_dtype, ops
from compiler.ir.positions import flatten
from compiler.ir.size import Integer, is_below
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, below, inside_of
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue, fixed

aten = torch.ops.aten


#: A place in a window that is no element of the image: behind all that are, where the first of equals is looked for.
NOWHERE = 2**62


def along(value: Sequence[Integer] | int, rank: int) -> tuple[int, ...]:
    """One number for each of `rank` dimensions, of which fewer may be given: one stands for all."""
    given = (value,) if isinstance(value, int) else tuple(fixed(number) for number in value)
    return given if len(given) == rank else given[:1] * rank


class Window:
    """Where the windows of a pooling operator lie, and which of their elements are elements of the image."""

    def __init__(
        self, build: Builder, x: TensorValue, rank: int, kernel: Any, stride: Any, padding: Any, dilation: Any = 1
    ) -> None:
        result = build.eager
        self.shape: tuple[Integer, ...] = (result[0] if isinstance(result, list | tuple) else result).shape
        self.rank = rank
        self.image = x.shape[-rank:]
        self.kernel = along(kernel, rank)
        self.stride = along(stride, rank) if stride else self.kernel
        self.padding = along(padding, rank)
        self.dilation = along(dilation, rank)

    def place(self, position: Position, window: Position) -> Position:
        """The place in the image of an element of a window."""
        parts = zip(position[-self.rank :], window, self.stride, self.padding, self.dilation, strict=True)
        return tuple(out * stride + inner * step - before for out, inner, stride, before, step in parts)

    def windows_over(self, position: Position, back: Position, pooled: Sequence[Integer]) -> tuple[Position, Any]:
        """Of the windows that may hold an element of the image, the one `back` steps before the last that starts at or
        before it; and whether there is such a window (None where there always is)."""
        starts = zip(position[-self.rank :], back, self.stride, self.padding, strict=True)
        window = tuple((index + before) // stride - step for index, step, stride, before in starts)
        return window, inside_of(window, pooled)

    @property
    def overlap(self) -> tuple[int, ...]:
        """How many windows hold one element at most, by dimension."""
        sizes = zip(self.kernel, self.dilation, self.stride, strict=True)
        return tuple(-(-((kernel - 1) * step + 1) // stride) for kernel, step, stride in sizes)

    def inside(self, place: Position) -> Any:
        """Whether a place lies in the image, or None where every one does."""
        return inside_of(place, self.image)


def _average(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> TensorValue:  # fmt: skip
        window = Window(build, x, rank, kernel_size, stride, padding)
        compute = compute_dtype(x.dtype)
        divide = ops.truediv if x.dtype.is_floating_point else ops.truncdiv

        def element(position: Position, reduced: Position) -> Any:
            place = window.place(position, reduced)
            total = ops.reduce("sum", x.load((*position[:-rank], *place), window.inside(place)))
            if divisor_override is not None:
                return divide(total, ops.constant(divisor_override, compute))
            return divide(total, ops.to_dtype(_window_size(window, position, count_include_pad), compute))

        return build.reduction(window.shape, x.dtype, window.kernel, element)


def _window_size(window: Window, position: Position, include_padding: bool) -> Any:
    """How many elements a window averages over: fewer at the edges, where it hangs over the (padded) image."""
    count = None
    for axis in range(window.rank):
        start = position[axis - window.rank] * window.stride[axis] - window.padding[axis]
        lowest = -window.padding[axis] if include_padding else 0
        highest = window.image[axis] + (window.padding[axis] if include_padding else 0)
        first, last = start, start + window.kernel[axis]
        begin, end = ops.index_value(first), ops.index_value(last)
        starts_before = not is_below(lowest - 1, first.bounds[0])
        ends_behind = not is_below(last.bounds[1], highest + 1)
        if starts_before:
            begin = ops.maximum(begin, ops.constant(lowest, torch.int64))
        if ends_behind:
            end = ops.minimum(end, ops.constant(highest, torch.int64))
        size = ops.sub(end, begin) if starts_before or ends_behind else ops.constant(window.kernel[axis], torch.int64)
        count = size if count is None else ops.mul(count, size)
    return count


def lowest_of(dtype: torch.dtype) -> Any:
    return ops.constant(float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min, dtype)


def _largest(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[TensorValue, TensorValue]:  # fmt: skip
        """Two nodes: the largest elements, and their places in the image as ATen numbers them."""
        window = Window(build, x, rank, kernel_size, stride, padding, dilation)

        def value(position: Position, reduced: Position) -> Any:
            place = window.place(position, reduced)
            inside = window.inside(place)
            loaded = x.load((*position[:-rank], *place), inside)
            return loaded if inside is None else ops.where(inside, loaded, lowest_of(x.dtype))

        def index(position: Position, reduced: Position) -> Any:
            place = window.place(position, reduced)
            number, inside = ops.index_value(flatten(place, window.image)), window.inside(place)
            if inside is not None:
                number = ops.where(inside, number, ops.constant(NOWHERE, torch.int64))
            return ops.reduce("argmax", value(position, reduced), number)

        largest = build.reduction(
            window.shape, x.dtype, window.kernel, lambda position, reduced: ops.reduce("max", value(position, reduced))
        )
        return largest, build.reduction(window.shape, torch.int64, window.kernel, index, label="indices")


# --- backward: an element of the image asks the windows that it is in


def _largest_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, ceil_mode: bool, indices: TensorValue,
    ) -> TensorValue:  # fmt: skip
        window = Window(build, x, rank, kernel_size, stride, padding, dilation)
        compute = compute_dtype(x.dtype)

        def element(position: Position, back: Position) -> Any:
            pooled, exists = window.windows_over(position, back, gradient.shape[-rank:])
            place = (*position[:-rank], *pooled)
            here = ops.index_value(flatten(position[-rank:], window.image))
            is_largest = ops.eq(indices.load(place, exists), here)
            chosen = is_largest if exists is None else ops.logical_and(exists, is_largest)
            share = ops.where(chosen, gradient.load(place, exists), ops.constant(0, compute))
            return ops.reduce("sum", share)

        return build.reduction(x.shape, x.dtype, window.overlap, element)


def _average_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any,
        ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
    ) -> TensorValue:  # fmt: skip
        window = Window(build, x, rank, kernel_size, stride, padding)
        compute = compute_dtype(x.dtype)

        def element(position: Position, back: Position) -> Any:
            pooled, exists = window.windows_over(position, back, gradient.shape[-rank:])
            parts = zip(position[-rank:], pooled, window.stride, window.padding, strict=True)
            distances = [index - (place * step - before) for index, place, step, before in parts]
            limits = zip(distances, window.kernel, strict=True)
            conditions = [below(distance, size) for distance, size in limits if not is_below(distance.bounds[1], size)]
            exists = all_of([*([] if exists is None else [exists]), *conditions])
            value = gradient.load((*position[:-rank], *pooled), exists)
            # `pooled` may lie beside the image where no window exists, but the division there is of a zero.
            size = ops.to_dtype(_window_size(window, pooled, count_include_pad), compute)
            share = ops.truediv(value, size if divisor_override is None else ops.constant(divisor_override, compute))
            if exists is not None:
                share = ops.where(exists, share, ops.constant(0, compute))
            return ops.reduce("sum", share)

        return build.reduction(x.shape, x.dtype, window.overlap, element)


for _rank in (2, 3):
    _average(_rank, getattr(aten, f"avg_pool{_rank}d"))
    _average_backward(_rank, getattr(aten, f"avg_pool{_rank}d_backward"))
    _largest(_rank, getattr(aten, f"max_pool{_rank}d_with_indices"))
    _largest_backward(_rank, getattr(aten, f"max_pool{_rank}d_with_indices_backward"))
