"""A depthwise convolution as a loop: each channel is summed over windows of one channel of the image.

    y[n, c, h, w] = sum over i, j of x[n, c // m, s*h + i - p, t*w + j - q] * f[c, 0, i, j]

There is nothing for matrix units in it, and the library's kernels are far from what memory gives. As a loop it lies as
what it reads does, and what follows is computed before anything is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from compiler.ir.index import Index
from compiler.ir.nodes import Layout
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import inside_of
from compiler.lowering.values import Position, TensorValue


class DepthwiseConvolution:
    """What a graph calls where a depthwise convolution is to be a loop."""

    __name__ = "depthwise_convolution"

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, image: Tensor, weight: Tensor, *arguments: Any) -> Tensor:
        """The same by ATen, of the arguments of `aten.convolution`."""
        return torch.ops.aten.convolution.default(image, weight, *arguments)  # type: ignore[no-any-return]


DEPTHWISE = DepthwiseConvolution()


def depthwise_convolution(
    build: Builder, image: TensorValue, weight: TensorValue, bias: TensorValue | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], *_: Any,
) -> TensorValue:  # fmt: skip
    """The current node's result; it lies as the image does where that is moved, else as eager's."""
    result = build.eager
    window = weight.shape[2:]
    multiplier = weight.shape[0] // image.shape[1]
    weight = _side_by_side(build, weight)

    def element(position: Position, reduced: Position) -> Any:
        number, channel, *block = position
        parts = zip(block, reduced, stride, padding, dilation, strict=True)
        place = [count * step + k * apart - before for count, k, step, before, apart in parts]
        taken = image.load((number, channel // multiplier, *place), inside_of(place, image.shape[2:]))
        total = ops.reduce("sum", ops.mul(taken, weight.load((channel, Index.number(0), *reduced))))
        return total if bias is None else ops.add(total, bias.load((channel,)))

    return build.reduction(result.shape, result.dtype, window, element)


def _side_by_side(build: Builder, weight: TensorValue) -> TensorValue:
    """The filters; those of all channels lie side by side, for each place of the window, where results do."""
    result, window = build.eager, weight.shape[2:]
    if build.result_layout(result.shape, result.dtype).stride[1] != 1 or prod(window) == 1:
        return weight
    count = weight.shape[0]
    strides = tuple(count * prod(window[place + 1 :]) for place in range(len(window)))
    layout = Layout(weight.shape, (1, count * prod(window), *strides), weight.dtype)
    return build.materialise(weight, layout, label="filters")
