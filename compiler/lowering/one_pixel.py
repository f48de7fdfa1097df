"""A convolution with filters of one pixel, channels-last, is a matrix product.

    y[n, k, h, w] = sum over c of x[n, c, h, w] * f[k, c]

    pixels (n, h, w) lie one after another, each with its channels side by side, in x and in y:
    y (pixels, k)  =  x (pixels, c)  times  f (c, k)

As a product it can take what follows it, a normalisation, a sum and an activation, before anything is stored, which no
call of a convolution can in bfloat16; and its call takes the host less time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.nodes import Layout, TensorArgument
from compiler.lowering.builder import Builder
from compiler.lowering.eager import EagerTensor
from compiler.lowering.values import TensorValue, of_buffer

aten = torch.ops.aten

#: Elements of a half type that the matrix units' loads take at once: rows of other lengths are loaded piecemeal.
VECTOR = 8
REASON = (
    "A convolution with filters of one pixel is a matrix product over the channels, and so a library call: cuBLAS is "
    "tuned for every size of it."
)


def pixel_product(build: Builder, arguments: Sequence[Any], strides: Sequence[int]) -> TensorValue | None:
    """The current node's result as a product, where it is one: `arguments` are those of `aten.convolution` with
    channels-last tensors, `strides` those that the result is to have."""
    image, weight, bias, stride, padding, _, is_transposed, _, groups = arguments
    result: EagerTensor = build.eager
    filters, channels, *_ = weight.layout.shape
    if not is_pixel_product(weight.layout.shape, result.dtype, stride, padding, is_transposed, groups):
        return None
    pixels = result.shape[0] * result.shape[2] * result.shape[3]
    left = _matrix(image, (pixels, channels), (channels, 1))
    right = _matrix(weight, (channels, filters), (1, channels))
    matrix: TensorValue = build.extern(
        aten.mm.default if bias is None else aten.addmm.default, (left, right) if bias is None else (bias, left, right),
        {}, is_fallback=False, reason=REASON,
        result=EagerTensor((pixels, filters), (filters, 1), 0, result.dtype, result.device),
    )  # fmt: skip
    assert matrix.buffer is not None
    return of_buffer(matrix.buffer, Layout(result.shape, tuple(strides), result.dtype))


def is_pixel_product(
    filter_shape: Sequence[Any], dtype: torch.dtype, stride: Sequence[int], padding: Sequence[int],
    is_transposed: bool, groups: int,
) -> bool:  # fmt: skip
    """Whether a convolution of two dimensions becomes a product where its tensors are channels-last."""
    if not all(isinstance(size, int) for size in filter_shape):
        return False
    filters, channels, *window = filter_shape
    is_plain = not is_transposed and groups == 1 and set(window) == set(stride) == {1} and set(padding) == {0}
    is_half = dtype in (torch.float16, torch.bfloat16)
    return is_plain and is_half and filters % VECTOR == 0 and channels % VECTOR == 0


def _matrix(tensor: TensorArgument, shape: tuple[int, int], strides: tuple[int, int]) -> TensorArgument:
    return TensorArgument(tensor.buffer, Layout(shape, strides, tensor.layout.dtype, tensor.layout.offset))
