"""Blocks that slide over an image, laid out as columns (`unfold`), and columns added up to an image again (`fold`).

    columns[channel, kernel offset, block]  =  image[channel, block * stride + kernel offset * dilation - padding]

For `fold`, every element of the image asks, for each offset in a block where it may lie, whether there is such a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, inside_of
from compiler.lowering.pooling import SlidingWindows, along
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue, constant

aten = torch.ops.aten


def _blocks(image: Sequence[Integer], kernel: Any, dilation: Any, padding: Any, stride: Any) -> SlidingWindows:
    """The blocks of a kernel over an image of two dimensions."""
    sizes = zip(image, *(along(numbers, 2) for numbers in (kernel, dilation, padding, stride)), strict=True)
    counts = tuple(
        (size + 2 * before - step * (kernel - 1) - 1) // stride + 1 for size, kernel, step, before, stride in sizes
    )
    return SlidingWindows(tuple(image), counts, kernel, stride, padding, dilation)


@lowers(aten.im2col.default)
def im2col(build: Builder, x: TensorValue, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> TensorValue:
    *batch, channels = x.shape[:-2]
    blocks = _blocks(x.shape[-2:], kernel_size, dilation, padding, stride)
    kernel, counts = blocks.most_elements, blocks.pooled

    def element(position: Position) -> Any:
        *front, row, column = position
        channel, *inner = unflatten(row, (channels, *kernel))
        source, inside = blocks.element(unflatten(column, counts), tuple(inner))
        return x.load((*front, channel, *source), inside)

    return build.pointwise((*batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]), x.dtype, element)


@lowers(aten.col2im.default)
def col2im(
    build: Builder, x: TensorValue, output_size: Sequence[Integer], kernel_size: Any, dilation: Any, padding: Any,
    stride: Any,
) -> TensorValue:  # fmt: skip
    blocks = _blocks(output_size, kernel_size, dilation, padding, stride)
    kernel = blocks.most_elements
    channels = x.shape[-2] // (kernel[0] * kernel[1])

    def element(position: Position, reduced: Position) -> Any:
        *front, channel, row, column = position
        starts = [index + before for index, before in zip((row, column), blocks.padding, strict=True)]
        axes = zip(starts, reduced, kernel, blocks.dilation, blocks.stride, strict=True)
        inner, numbers, conditions = zip(*(_covering(*axis) for axis in axes), strict=True)
        inside = inside_of(numbers, blocks.pooled)
        source = (*front, flatten((channel, *inner), (channels, *kernel)), flatten(numbers, blocks.pooled))
        known = [condition for condition in (inside, *conditions) if condition is not None]
        return ops.reduce("sum", x.load(source, all_of(known)))

    shape = (*x.shape[:-2], channels, *output_size)
    if 0 in shape:
        return constant(0, shape, x.dtype)
    axes = zip(kernel, blocks.dilation, blocks.stride, strict=True)
    sizes = [-(-size // stride) if dilation == 1 else size for size, dilation, stride in axes]
    return build.reduction(shape, x.dtype, sizes, element)


def _covering(start: Index, number: Index, kernel: int, dilation: int, stride: int) -> tuple[Index, Index, Any]:
    """The offset in a kernel, and the block that has it at `start`, for the given one of the offsets that may, and the
    condition of there being one (None: always). In a kernel without gaps each `stride`th of its offsets may."""
    if dilation == 1:
        k = start % stride + number * stride
        is_one = None if kernel % stride == 0 else ops.index_value(k) < ops.index_value(Index.number(kernel))
        return k, start // stride - number, is_one
    block = (start - number * dilation) // stride
    is_one = ops.index_value(start - number * dilation) == ops.index_value(block * stride)
    return number, block, is_one if stride != 1 else None
