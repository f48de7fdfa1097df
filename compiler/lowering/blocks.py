"""Blocks that slide over an image, laid out as columns (`unfold`), and columns added up to an image again (`fold`).

    columns[channel, kernel place, block]  =  image[channel, block * stride + kernel place * dilation - padding]

For `fold`, every element of the image asks, for each place in a block, whether a block starts so that it lies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.ops import ops
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, inside_of
from compiler.lowering.pooling import along
from compiler.lowering.registry import lowers
from compiler.lowering.values import Position, TensorValue, constant

aten = torch.ops.aten


class Blocks:
    """Where the blocks of a kernel over an image of two dimensions lie."""

    def __init__(self, image: Sequence[Integer], kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.image = tuple(image)
        self.kernel, self.dilation = along(kernel, 2), along(dilation, 2)
        self.padding, self.stride = along(padding, 2), along(stride, 2)
        sizes = zip(self.image, self.kernel, self.dilation, self.padding, self.stride, strict=True)
        #: How many there are along each axis.
        self.counts = tuple(
            (size + 2 * before - step * (kernel - 1) - 1) // stride + 1 for size, kernel, step, before, stride in sizes
        )


@lowers(aten.im2col.default)
def im2col(build: Builder, x: TensorValue, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> TensorValue:
    *batch, channels = x.shape[:-2]
    blocks = Blocks(x.shape[-2:], kernel_size, dilation, padding, stride)

    def element(position: Position) -> Any:
        *front, row, column = position
        channel, *inner = unflatten(row, (channels, *blocks.kernel))
        block = unflatten(column, blocks.counts)
        parts = zip(block, inner, blocks.stride, blocks.dilation, blocks.padding, strict=True)
        place = [number * stride + k * step - before for number, k, stride, step, before in parts]
        return x.load((*front, channel, *place), inside_of(place, blocks.image))

    shape = (*batch, channels * blocks.kernel[0] * blocks.kernel[1], blocks.counts[0] * blocks.counts[1])
    return build.pointwise(shape, x.dtype, element)


@lowers(aten.col2im.default)
def col2im(
    build: Builder, x: TensorValue, output_size: Sequence[Integer], kernel_size: Any, dilation: Any, padding: Any,
    stride: Any,
) -> TensorValue:  # fmt: skip
    blocks = Blocks(output_size, kernel_size, dilation, padding, stride)
    channels = x.shape[-2] // (blocks.kernel[0] * blocks.kernel[1])

    def element(position: Position, inner: Position) -> Any:
        *front, channel, row, column = position
        parts = zip((row, column), inner, blocks.dilation, blocks.padding, strict=True)
        starts = [index + before - k * step for index, k, step, before in parts]
        numbers = [start // step for start, step in zip(starts, blocks.stride, strict=True)]
        conditions = [
            ops.eq(ops.index_value(start), ops.index_value(number * step))
            for start, number, step in zip(starts, numbers, blocks.stride, strict=True) if step != 1
        ]  # fmt: skip
        inside = inside_of(numbers, blocks.counts)
        place = (*front, flatten((channel, *inner), (channels, *blocks.kernel)), flatten(numbers, blocks.counts))
        return ops.reduce("sum", x.load(place, all_of([*([] if inside is None else [inside]), *conditions])))

    shape = (*x.shape[:-2], channels, *output_size)
    if 0 in shape:
        return constant(0, shape, x.dtype)
    return build.reduction(shape, x.dtype, blocks.kernel, element)
