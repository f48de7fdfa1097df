"""Pooling: a reduction over a window of the last two or three dimensions, and the gradient of that, for which an
element of the image asks the windows that it is in. Where the windows lie:

    sliding      window i of n begins at  i * stride - padding
    adaptive     window i of n over m elements is  [floor(i*m / n), ceil((i + 1)*m / n))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import mul
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.positions import flatten
from compiler.ir.size import Integer, is_below
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, below, inside_of
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue, fixed

aten = torch.ops.aten

#: A position in a window that is no element of the image: behind all that are, where the first of equals is looked for.
NOWHERE = 2**62


def along(value: Sequence[Integer] | int, rank: int) -> tuple[int, ...]:
    """One number for each of `rank` dimensions, of which fewer may be given: one stands for all."""
    given = (value,) if isinstance(value, int) else tuple(fixed(number) for number in value)
    return given if len(given) == rank else given[:1] * rank


class SlidingWindows:
    """Windows over the last dimensions of an image, `pooled` in number by dimension, of `most_elements` each."""

    def __init__(
        self, image: tuple[Integer, ...], pooled: tuple[Integer, ...], kernel: Any, stride: Any, padding: Any,
        dilation: Any = 1, includes_padding: bool = True, divisor: int | None = None,
    ) -> None:  # fmt: skip
        rank = len(pooled)
        self.pooled, self.image = pooled, image
        self.most_elements = along(kernel, rank)
        self.stride = along(stride, rank) if stride else self.most_elements
        self.padding, self.dilation = along(padding, rank), along(dilation, rank)
        self.includes_padding, self.divisor = includes_padding, divisor

    def element(self, position: Position, inner: Position) -> tuple[Position, Any]:
        """The position in the image of an element of a result's window; and whether there is one (None: always)."""
        parts = zip(position[-len(inner) :], inner, self.stride, self.padding, self.dilation, strict=True)
        source = tuple(out * stride + inner * step - before for out, inner, stride, before, step in parts)
        return source, inside_of(source, self.image)

    @property
    def most_windows(self) -> tuple[int, ...]:
        """How many windows hold one element at most, by dimension."""
        sizes = zip(self.most_elements, self.dilation, self.stride, strict=True)
        return tuple(-(-((kernel - 1) * step + 1) // stride) for kernel, step, stride in sizes)

    def holder(self, element: Position, step: Position, is_sure: bool) -> tuple[Position, Any]:
        """One of the windows that may hold an element of the image, that `step` before the last one that starts at or
        before it, and whether there is such a window (None: always); `is_sure`: and whether it holds it."""
        starts = zip(element, step, self.stride, self.padding, strict=True)
        window = tuple((index + before) // stride - back for index, back, stride, before in starts)
        exists = inside_of(window, self.pooled)
        if not is_sure:
            return window, exists
        parts = zip(element, window, self.stride, self.padding, self.most_elements, strict=True)
        distances = [(index - (number * stride - before), size) for index, number, stride, before, size in parts]
        conditions = [below(distance, size) for distance, size in distances if not is_below(distance.bounds[1], size)]
        return window, all_of([*([] if exists is None else [exists]), *conditions])

    @property
    def common_size(self) -> int | None:
        """How many elements each window averages over; None where they differ, as some hang over the image."""
        if self.divisor is not None:
            return self.divisor
        windows = zip(self.image, self.pooled, self.most_elements, self.stride, self.padding, strict=True)
        for image, pooled, kernel, stride, padding in windows:
            end, highest = (pooled - 1) * stride - padding + kernel, image + padding * self.includes_padding
            if (padding and not self.includes_padding) or not is_below(end, highest + 1):
                return None
        return prod(self.most_elements)

    def size(self, window: Position) -> Any:
        """How many elements a window averages over: fewer at the edges, where it hangs over the (padded) image."""
        sizes = []
        for number, image, kernel, stride, padding in zip(
            window, self.image, self.most_elements, self.stride, self.padding, strict=True
        ):
            first = number * stride - padding
            last = first + kernel
            lowest, highest = (-padding, image + padding) if self.includes_padding else (0, image)
            begin, end = ops.index_value(first), ops.index_value(last)
            starts_before = not is_below(lowest - 1, first.bounds[0])
            ends_behind = not is_below(last.bounds[1], highest + 1)
            if starts_before:
                begin = ops.maximum(begin, lowest)
            if ends_behind:
                end = ops.minimum(end, highest)
            sizes.append(end - begin if starts_before or ends_behind else ops.constant(kernel, torch.int64))
        return reduce(mul, sizes)


class AdaptiveWindows:
    """The same of windows that share an image, the largest of `most_elements`."""

    def __init__(self, image: Sequence[Any], pooled: Sequence[Any]) -> None:
        self.image = tuple(fixed(size) for size in image)
        self.pooled = tuple(fixed(size) for size in pooled)
        self.most_elements = tuple(most_in_common(m, n) for m, n in zip(self.image, self.pooled, strict=True))
        self.most_windows = tuple(most_in_common(n, m) for m, n in zip(self.image, self.pooled, strict=True))

    def start(self, axis: int, number: Index) -> Index:
        return number * self.image[axis] // self.pooled[axis]

    def end(self, axis: int, number: Index) -> Index:
        return ((number + 1) * self.image[axis] + self.pooled[axis] - 1) // self.pooled[axis]

    def element(self, position: Position, inner: Position) -> tuple[Position, Any]:
        window = position[-len(inner) :]
        found = tuple(self.start(axis, number) + inner[axis] for axis, number in enumerate(window))
        return found, all_of([
            ops.index_value(found[axis]) < ops.index_value(self.end(axis, number))
            for axis, number in enumerate(window) if self.image[axis] % self.pooled[axis]
        ])  # fmt: skip

    def holder(self, element: Position, step: Position, is_sure: bool) -> tuple[Position, Any]:
        """That `step` behind the first one that holds the element."""
        found = tuple(index * n // m + s for index, n, m, s in zip(element, self.pooled, self.image, step, strict=True))
        conditions = []
        for axis, (number, index) in enumerate(zip(found, element, strict=True)):
            if self.image[axis] % self.pooled[axis] == 0:
                continue
            conditions.append(ops.index_value(self.start(axis, number)) <= ops.index_value(index))
            if number.bounds[1] >= self.pooled[axis]:
                conditions.append(below(number, self.pooled[axis]))
        return found, all_of(conditions)

    @property
    def common_size(self) -> int | None:
        if any(n == 0 or m % n for m, n in zip(self.image, self.pooled, strict=True)):
            return None
        return prod(self.most_elements)

    def size(self, window: Position) -> Any:
        return reduce(mul, (ops.index_value(self.end(axis, n) - self.start(axis, n)) for axis, n in enumerate(window)))


Windows = SlidingWindows | AdaptiveWindows


def most_in_common(size: int, parts: int) -> int:
    """The size of the largest of `parts` windows over `size` elements."""
    if not parts:
        return 0
    return max((-(-(i + 1) * size // parts)) - i * size // parts for i in range(parts))


# --- what all windows have in common


def _average(build: Builder, x: TensorValue, windows: Windows) -> TensorValue:
    rank, divide = len(windows.pooled), ops.truediv if x.dtype.is_floating_point else ops.truncdiv

    def element(position: Position, reduced: Position) -> Any:
        source, inside = windows.element(position, reduced)
        total = ops.reduce("sum", x.load((*position[:-rank], *source), inside))
        return divide(total, _divisor(windows, position[-rank:], x.dtype))

    return build.reduction((*x.shape[:-rank], *windows.pooled), x.dtype, windows.most_elements, element)


def _average_backward(build: Builder, gradient: TensorValue, x: TensorValue, windows: Windows) -> TensorValue:
    rank = len(windows.pooled)

    def element(position: Position, step: Position) -> Any:
        window, holds = windows.holder(position[-rank:], step, is_sure=True)
        value, divisor = gradient.load((*position[:-rank], *window), holds), _divisor(windows, window, x.dtype)
        if windows.common_size is not None:
            return ops.reduce("sum", value) / divisor
        # The window may lie beside the image where none exists, but the division there is of a zero.
        share = value / divisor
        return ops.reduce("sum", share if holds is None else ops.where(holds, share, 0))

    return build.reduction(x.shape, x.dtype, windows.most_windows, element)


def _divisor(windows: Windows, window: Position, dtype: torch.dtype) -> Any:
    """The size of a window as what its sum is divided by. A GPU multiplies with the reciprocal of a constant, which is
    exact for a power of two. Other sizes are converted, as eager mode divides here and rounds once."""
    common, compute = windows.common_size, compute_dtype(dtype)
    if common is None:
        return windows.size(window).to(compute)
    is_power_of_two = common.bit_count() == 1
    return ops.constant(common, compute if is_power_of_two else torch.int64).to(compute)


def _largest(build: Builder, x: TensorValue, windows: Windows) -> tuple[TensorValue, TensorValue]:
    """Two nodes: the largest elements of windows, and their positions in the image as ATen numbers them."""
    rank, shape = len(windows.pooled), (*x.shape[: -len(windows.pooled)], *windows.pooled)
    least = float("-inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min

    def value(position: Position, reduced: Position) -> Any:
        source, inside = windows.element(position, reduced)
        loaded = x.load((*position[:-rank], *source), inside)
        return loaded if inside is None else ops.where(inside, loaded, least)

    def index(position: Position, reduced: Position) -> Any:
        source, inside = windows.element(position, reduced)
        number = ops.index_value(flatten(source, x.shape[-rank:]))
        if inside is not None:
            number = ops.where(inside, number, NOWHERE)
        return ops.reduce("argmax", value(position, reduced), number)

    largest = build.reduction(
        shape, x.dtype, windows.most_elements, lambda position, reduced: ops.reduce("max", value(position, reduced))
    )
    return largest, build.reduction(shape, torch.int64, windows.most_elements, index, label="indices")


def _largest_backward(
    build: Builder, gradient: TensorValue, x: TensorValue, indices: TensorValue, windows: Windows
) -> TensorValue:
    rank = len(windows.pooled)

    def element(position: Position, step: Position) -> Any:
        window, exists = windows.holder(position[-rank:], step, is_sure=False)
        result = (*position[:-rank], *window)
        here = ops.index_value(flatten(position[-rank:], x.shape[-rank:]))
        is_largest = indices.load(result, exists) == here
        chosen = is_largest if exists is None else exists & is_largest
        return ops.reduce("sum", ops.where(chosen, gradient.load(result, exists), 0))

    return build.reduction(x.shape, x.dtype, windows.most_windows, element)


# --- the operators


def _sliding(rank: int) -> None:
    @lowers(getattr(aten, f"avg_pool{rank}d"))
    def average(
        build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> TensorValue:  # fmt: skip
        pooled = build.eager.shape[-rank:]
        return _average(build, x, SlidingWindows(
            x.shape[-rank:], pooled, kernel_size, stride, padding, 1, count_include_pad, divisor_override
        ))  # fmt: skip

    @lowers(getattr(aten, f"avg_pool{rank}d_backward"))
    def average_backward(
        build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any,
        ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
    ) -> TensorValue:  # fmt: skip
        pooled = gradient.shape[-rank:]
        return _average_backward(build, gradient, x, SlidingWindows(
            x.shape[-rank:], pooled, kernel_size, stride, padding, 1, count_include_pad, divisor_override
        ))  # fmt: skip

    @lowers(getattr(aten, f"max_pool{rank}d_with_indices"))
    def largest(
        build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[TensorValue, TensorValue]:  # fmt: skip
        pooled = build.eager[0].shape[-rank:]
        return _largest(build, x, SlidingWindows(x.shape[-rank:], pooled, kernel_size, stride, padding, dilation))

    @lowers(getattr(aten, f"max_pool{rank}d_with_indices_backward"))
    def largest_backward(
        build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, ceil_mode: bool, indices: TensorValue,
    ) -> TensorValue:  # fmt: skip
        windows = SlidingWindows(x.shape[-rank:], gradient.shape[-rank:], kernel_size, stride, padding, dilation)
        return _largest_backward(build, gradient, x, indices, windows)


def _adaptive(rank: int) -> None:
    def windows(x: TensorValue, pooled: Any) -> AdaptiveWindows:
        return AdaptiveWindows(x.shape[-rank:], pooled.shape[-rank:])

    @lowers(getattr(aten, f"_adaptive_avg_pool{rank}d"))
    def average(build: Builder, x: TensorValue, output_size: Any) -> TensorValue:
        return _average(build, x, windows(x, build.eager))

    @lowers(getattr(aten, f"_adaptive_avg_pool{rank}d_backward"))
    def average_backward(build: Builder, gradient: TensorValue, x: TensorValue) -> TensorValue:
        return _average_backward(build, gradient, x, windows(x, gradient))

    @lowers(getattr(aten, f"adaptive_max_pool{rank}d"))
    def largest(build: Builder, x: TensorValue, output_size: Any) -> tuple[TensorValue, TensorValue]:
        return _largest(build, x, windows(x, build.eager[0]))

    @lowers(getattr(aten, f"adaptive_max_pool{rank}d_backward"))
    def largest_backward(build: Builder, gradient: TensorValue, x: TensorValue, indices: TensorValue) -> TensorValue:
        return _largest_backward(build, gradient, x, indices, windows(x, gradient))


for _rank in (2, 3):
    _sliding(_rank)
    _adaptive(_rank)
