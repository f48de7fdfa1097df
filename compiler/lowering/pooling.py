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
from compiler.lowering.values import CannotLower, Position, TensorValue

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
        assert build.node is not None
        result = build.node.meta["val"]
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
