"""A depthwise convolution as a loop: each channel is summed over windows of one channel of the image.

    y[n, c, h, w] = sum over i, j of x[n, c // m, s*h + i - p, t*w + j - q] * f[c, 0, i, j]

There is nothing for matrix units in it, and the library's kernels are far from what memory gives. In a loop what
follows is computed before anything is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compiler.ir.index import Index
from compiler.ir.nodes import Layout
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import inside_of
from compiler.lowering.values import Position, TensorValue


def depthwise_convolution(
    build: Builder, image: TensorValue, weight: TensorValue, bias: TensorValue | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], *_: Any, layout: Layout | None = None,
) -> TensorValue:  # fmt: skip
    """The current node's result; it lies as eager's, or by this layout."""
    result = build.eager
    layout = layout or build.result_layout(result.shape, result.dtype)
    window = weight.shape[2:]
    multiplier = weight.shape[0] // image.shape[1]
    weight = _side_by_side(build, weight, layout)

    def element(position: Position, reduced: Position) -> Any:
        number, channel, *block = position
        parts = zip(block, reduced, stride, padding, dilation, strict=True)
        place = [count * step + k * apart - before for count, k, step, before, apart in parts]
        taken = image.load((number, channel // multiplier, *place), inside_of(place, image.shape[2:]))
        total = ops.reduce("sum", taken * weight.load((channel, Index.number(0), *reduced)))
        return total if bias is None else total + bias.load((channel,))

    return build.reduction(result.shape, result.dtype, window, element, layout=layout)


def _side_by_side(build: Builder, weight: TensorValue, result: Layout) -> TensorValue:
    """The filters; those of all channels lie side by side, for each place of the window, where results do."""
    window = weight.shape[2:]
    if result.stride[1] != 1 or prod(window) == 1:
        return weight
    count = weight.shape[0]
    strides = tuple(count * prod(window[place + 1 :]) for place in range(len(window)))
    layout = Layout(weight.shape, (1, count * prod(window), *strides), weight.dtype)
    return build.materialise(weight, layout, label="filters")
