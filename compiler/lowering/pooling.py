"""Pooling: a reduction over a window that slides over the last two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.index import flatten
from compiler.ir.ops import compute_dtype, ops
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, at_least, below
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, fixed

aten = torch.ops.aten


def pair(value: Sequence[int] | int) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    return (int(value[0]), int(value[-1]))


class Window:
    """Where the windows of a pooling operator lie, and which of their elements are elements of the image."""

    def __init__(
        self, build: Builder, x: TensorValue, kernel: Any, stride: Any, padding: Any, dilation: Any = 1
    ) -> None:
        result = build.eager
        self.shape = tuple(int(size) for size in (result[0] if isinstance(result, list | tuple) else result).shape)
        self.image = x.shape[-2:]
        self.kernel = pair(kernel)
        self.stride = pair(stride) if stride else self.kernel
        self.padding = pair(padding)
        self.dilation = pair(dilation)

    def place(self, position: Position, window: Position) -> Position:
        """The row and the column of an element of a window."""
        parts = zip(position[-2:], window, self.stride, self.padding, self.dilation, strict=True)
        return tuple(out * stride + inner * step - before for out, inner, stride, before, step in parts)

    def windows_over(self, position: Position, back: Position, pooled: Sequence[int]) -> tuple[Position, Any]:
        """Of the windows that may hold an element of the image, the one `back` steps before the last that starts at or
        before it; and whether there is such a window (None where there always is)."""
        starts = zip(position[-2:], back, self.stride, self.padding, strict=True)
        window = tuple((index + before) // stride - step for index, step, stride, before in starts)
        conditions = [at_least(index, 0) for index in window if index.bounds[0] < 0]
        conditions += [below(i, size) for i, size in zip(window, pooled, strict=True) if i.bounds[1] >= size]
        return window, all_of(conditions)

    @property
    def overlap(self) -> tuple[int, ...]:
        """How many windows hold one element at most, by dimension."""
        sizes = zip(self.kernel, self.dilation, self.stride, strict=True)
        return tuple(-(-((kernel - 1) * step + 1) // stride) for kernel, step, stride in sizes)

    def inside(self, place: Position) -> Any:
        """Whether a place lies in the image, or None where every one does."""
        conditions = [at_least(index, 0) for index in place if index.bounds[0] < 0]
        conditions += [below(i, size) for i, size in zip(place, self.image, strict=True) if i.bounds[1] >= size]
        return all_of(conditions)


@lowers(aten.avg_pool2d)
def avg_pool2d(
    build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> TensorValue:  # fmt: skip
    window = Window(build, x, kernel_size, stride, padding)
    compute = compute_dtype(x.dtype)
    if not x.dtype.is_floating_point:
        raise CannotLower("it averages integers")

    def element(position: Position, reduced: Position) -> Any:
        place = window.place(position, reduced)
        total = ops.reduce("sum", x.load((*position[:-2], *place), window.inside(place)))
        if divisor_override is not None:
            return ops.truediv(total, ops.constant(divisor_override, compute))
        return ops.truediv(total, ops.to_dtype(_window_size(window, position, count_include_pad), compute))

    return build.reduction(window.shape, x.dtype, window.kernel, element)


def _window_size(window: Window, position: Position, include_padding: bool) -> Any:
    """How many elements a window averages over: fewer at the edges, where it hangs over the (padded) image."""
    count = None
    for axis in (0, 1):
        start = position[axis - 2] * window.stride[axis] - window.padding[axis]
        lowest = -window.padding[axis] if include_padding else 0
        highest = window.image[axis] + (window.padding[axis] if include_padding else 0)
        first, last = start, start + window.kernel[axis]
        begin, end = ops.index_value(first), ops.index_value(last)
        if first.bounds[0] < lowest:
            begin = ops.maximum(begin, ops.constant(lowest, torch.int64))
        if last.bounds[1] > highest:
            end = ops.minimum(end, ops.constant(highest, torch.int64))
        is_clipped = first.bounds[0] < lowest or last.bounds[1] > highest
        size = ops.sub(end, begin) if is_clipped else ops.constant(window.kernel[axis], torch.int64)
        count = size if count is None else ops.mul(count, size)
    return count


@lowers(aten._adaptive_avg_pool2d)
def adaptive_avg_pool2d(build: Builder, x: TensorValue, output_size: Sequence[int]) -> TensorValue:
    rows, columns = pair(output_size)
    if x.shape[-2] % rows or x.shape[-1] % columns:
        raise CannotLower("its windows have unlike sizes")
    return avg_pool2d(build, x, (x.shape[-2] // rows, x.shape[-1] // columns))


@lowers(aten.max_pool2d_with_indices)
def max_pool2d_with_indices(
    build: Builder, x: TensorValue, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    """Two nodes: the largest elements, and their places in the image as ATen numbers them."""
    window = Window(build, x, kernel_size, stride, padding, dilation)
    if not x.dtype.is_floating_point:
        raise CannotLower("it pools integers")

    def value(position: Position, reduced: Position) -> Any:
        place = window.place(position, reduced)
        inside = window.inside(place)
        loaded = x.load((*position[:-2], *place), inside)
        return loaded if inside is None else ops.where(inside, loaded, ops.constant(float("-inf"), x.dtype))

    def index(position: Position, reduced: Position) -> Any:
        place = flatten(window.place(position, reduced), window.image)
        return ops.reduce("argmax", value(position, reduced), ops.index_value(place))

    largest = build.reduction(
        window.shape, x.dtype, window.kernel, lambda position, reduced: ops.reduce("max", value(position, reduced))
    )
    return largest, build.reduction(window.shape, torch.int64, window.kernel, index, label="indices")


# --- backward: an element of the image asks the windows that it is in


@lowers(aten.max_pool2d_with_indices_backward)
def max_pool2d_backward(
    build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: TensorValue,
) -> TensorValue:  # fmt: skip
    window = Window(build, x, kernel_size, stride, padding, dilation)
    compute = compute_dtype(x.dtype)

    def element(position: Position, back: Position) -> Any:
        pooled, exists = window.windows_over(position, back, [fixed(size) for size in gradient.shape[-2:]])
        place = (*position[:-2], *pooled)
        is_largest = ops.eq(indices.load(place, exists), ops.index_value(flatten(position[-2:], x.shape[-2:])))
        chosen = is_largest if exists is None else ops.logical_and(exists, is_largest)
        share = ops.where(chosen, gradient.load(place, exists), ops.constant(0, compute))
        return ops.reduce("sum", share)

    return build.reduction(x.shape, x.dtype, window.overlap, element)


@lowers(aten.avg_pool2d_backward)
def avg_pool2d_backward(
    build: Builder, gradient: TensorValue, x: TensorValue, kernel_size: Any, stride: Any, padding: Any,
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
) -> TensorValue:  # fmt: skip
    window = Window(build, x, kernel_size, stride, padding)
    compute = compute_dtype(x.dtype)

    def element(position: Position, back: Position) -> Any:
        pooled, exists = window.windows_over(position, back, [fixed(size) for size in gradient.shape[-2:]])
        starts = [w * step - before for w, step, before in zip(pooled, window.stride, window.padding, strict=True)]
        distances = [index - start for index, start in zip(position[-2:], starts, strict=True)]
        conditions = [below(d, size) for d, size in zip(distances, window.kernel, strict=True) if d.bounds[1] >= size]
        exists = all_of([*([] if exists is None else [exists]), *conditions])
        value = gradient.load((*position[:-2], *pooled), exists)
        # `pooled` may lie beside the image where no window exists, but the division there is of a zero.
        size = ops.to_dtype(_window_size(window, pooled, count_include_pad), compute)
        share = ops.truediv(value, size if divisor_override is None else ops.constant(divisor_override, compute))
        if exists is not None:
            share = ops.where(exists, share, ops.constant(0, compute))
        return ops.reduce("sum", share)

    return build.reduction(x.shape, x.dtype, window.overlap, element)


@lowers(aten._adaptive_avg_pool2d_backward)
def adaptive_avg_pool2d_backward(build: Builder, gradient: TensorValue, x: TensorValue) -> TensorValue:
    (rows, columns), (height, width) = gradient.shape[-2:], x.shape[-2:]
    if height % rows or width % columns:
        raise CannotLower("its windows have unlike sizes")
    kernel = (height // rows, width // columns)

    def element(position: Position) -> Any:
        pooled = tuple(index // size for index, size in zip(position[-2:], kernel, strict=True))
        count = ops.constant(kernel[0] * kernel[1], compute_dtype(x.dtype))
        return ops.truediv(gradient.load((*position[:-2], *pooled)), count)

    return build.pointwise(x.shape, x.dtype, element)
