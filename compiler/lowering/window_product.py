"""A convolution of few channels, channels-last, is a matrix product over the windows of the image.

    y[n, k, h, w] = sum over c, i, j of x[n, c, s*h + i - p, t*w + j - q] * f[k, c, i, j]

    windows (n, h, w), each with its elements (c, i, j) side by side, times the filter as a matrix

The library's half-precision kernels take eight channels at a time: they copy an image of three channels into one of
eight, and multiply by its zeros. Here the windows are a loop that reads the image as it lies, which the kernel of the
product can compute as it goes. Windows, or their rows, are filled up to whole vectors with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.nodes import Layout, TensorArgument
from compiler.ir.positions import unflatten
from compiler.lowering.builder import Builder
from compiler.lowering.channels_last import channels_last_strides
from compiler.lowering.eager import EagerTensor
from compiler.lowering.indexing import all_of, below, inside_of
from compiler.lowering.one_pixel import VECTOR
from compiler.lowering.values import Position, TensorValue, fixed, of_buffer

aten = torch.ops.aten

#: The library's half-precision kernels take channels by as many.
FEW_CHANNELS = 8
#: A stride of more elements leaves gaps between what lanes read that go along windows.
FAR_APART = 2
REASON = (
    "A convolution of few channels is a matrix product over the windows of the image, and so a library call: cuBLAS is "
    "tuned for every size of it."
)


def is_window_product(
    filter_shape: Sequence[Any], dtype: torch.dtype, dilation: Sequence[int], is_transposed: bool, groups: int
) -> bool:
    """Whether a convolution of two dimensions becomes such a product where it is channels-last."""
    filters, channels, *window = filter_shape
    is_plain = not is_transposed and groups == 1 and set(dilation) == {1}
    is_half = dtype in (torch.float16, torch.bfloat16)
    return is_plain and is_half and filters % VECTOR == 0 and channels < FEW_CHANNELS and prod(window) > 1


def window_product(
    build: Builder, image: TensorValue, weight: TensorValue, bias: TensorValue | None, stride: Sequence[int],
    padding: Sequence[int],
) -> TensorValue:  # fmt: skip
    """The current node's result, channels-last."""
    result: EagerTensor = build.eager
    batch, filters, *counts = result.shape
    *front, wide = weight.shape[1:]
    window = (*front, _row(fixed(wide), stride[-1]))
    rows, taken = batch * prod(counts), prod(window)
    length = -(-taken // VECTOR) * VECTOR

    def is_taken(column: Index) -> list[Any]:
        if window[-1] != wide:
            return [below(unflatten(column, window)[-1], wide)]
        return [] if length == taken else [below(column, taken)]

    def element(position: Position) -> Any:
        number, *block = unflatten(position[0], (batch, *counts))
        channel, *inner = unflatten(position[1], window)
        parts = zip(block, inner, stride, padding, strict=True)
        place = [count * step + k - before for count, k, step, before in parts]
        inside = inside_of(place, image.shape[2:])
        mask = all_of([*([] if inside is None else [inside]), *is_taken(position[1])])
        return image.load((number, channel, *place), mask)

    def filter_element(position: Position) -> Any:
        return weight.load((position[0], *unflatten(position[1], window)), all_of(is_taken(position[1])))

    dtype = result.dtype
    left = _stored(build, (rows, length), dtype, element, "windows")
    right = _stored(build, (filters, length), dtype, filter_element, "filter")
    right = TensorArgument(right.buffer, Layout((length, filters), (1, length), dtype))
    matrix: TensorValue = build.extern(
        aten.mm.default if bias is None else aten.addmm.default, (left, right) if bias is None else (bias, left, right),
        {}, is_fallback=False, reason=REASON,
        result=EagerTensor((rows, filters), (filters, 1), 0, dtype, result.device),
    )  # fmt: skip
    assert matrix.buffer is not None
    return of_buffer(matrix.buffer, Layout(result.shape, channels_last_strides(result.shape), dtype))


def _row(wide: int, stride: int) -> int:
    """How many numbers a row of a window takes. A GPU's lanes go along windows that are close together, and along rows
    of whole vectors where windows are far apart. On an H200, batches of 32, rows of 7 and of 8: 105 and 134 us with a
    stride of 2 (ResNet-50), 250 and 140 us with a stride of 4 (SegFormer)."""
    whole = -(-wide // VECTOR) * VECTOR
    return whole if stride > FAR_APART and 2 * whole <= 3 * wide else wide


def _stored(build: Builder, shape: tuple[Any, ...], dtype: torch.dtype, element: Any, label: str) -> TensorArgument:
    """A matrix that a loop computes."""
    layout = Layout.contiguous(shape, dtype)
    stored = build.pointwise(shape, dtype, element, label=label, layout=layout, materialise=True)
    assert stored.buffer is not None
    return TensorArgument(stored.buffer, layout)
