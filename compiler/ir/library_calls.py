"""Calls that graphs make beside PyTorch's operators: each is several of its calls, or one that fits more than one."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: Elements of two bytes that tensor cores' fast kernels load at a time.
ALIGNED_ELEMENTS = 8

#: Attention on a GPU: its kernels load so many bytes at a time from where a row begins, and do so without a word where
#: that is no multiple of them. They then give other values, or end with a misaligned address.
LOADED_BYTES = 16
LOADING_VECTORS = frozenset(
    getattr(aten, f"_scaled_dot_product_{kind}_attention{direction}").default
    for kind in ("flash", "efficient", "cudnn")
    for direction in ("", "_backward")
    if hasattr(aten, f"_scaled_dot_product_{kind}_attention{direction}")
)


class FusedConvolution:
    """`relu(convolution(image, filter) + bias + added)`, of images and filters of two dimensions, without groups: one
    kernel of cuDNN.

    Where the library has no such kernel for the arguments (and on a CPU, which runs what was decided for a GPU), it is
    ATen's convolution and what follows it, one after another."""

    __name__ = "convolution_bias_relu"

    def __init__(self) -> None:
        #: Arguments for which the library has no kernel: asking again would cost a search each time.
        self._refused: set[Any] = set()

    def __str__(self) -> str:
        return self.__name__

    def __call__(
        self, image: Tensor, weight: Tensor, bias: Tensor, added: Tensor | None,
        stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    ) -> Tensor:  # fmt: skip
        if image.is_cuda:
            key = (image.shape, weight.shape, image.dtype, *map(tuple, (stride, padding, dilation)), added is None)
            if key not in self._refused:
                try:
                    return _fused(image, weight, bias, added, stride, padding, dilation)
                except RuntimeError as error:
                    if isinstance(error, torch.cuda.OutOfMemoryError):
                        raise
                    self._refused.add(key)
        result = aten.convolution(image, weight, bias, stride, padding, dilation, False, [0, 0], 1)
        return (result if added is None else result.add_(added)).relu_()


def _fused(
    image: Tensor, weight: Tensor, bias: Tensor, added: Tensor | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
) -> Tensor:  # fmt: skip
    if added is None:
        return aten.cudnn_convolution_relu(image, weight, bias, stride, padding, dilation, 1)  # type: ignore[no-any-return]
    return aten.cudnn_convolution_add_relu(  # type: ignore[no-any-return]
        image, weight, added, 1.0, bias, stride, padding, dilation, 1
    )


FUSED_CONVOLUTION = FusedConvolution()


def rows_apart(columns: int) -> int:
    """How many rows of so many numbers of two bytes further on one starts in the same offset of a vector."""
    return ALIGNED_ELEMENTS // gcd(ALIGNED_ELEMENTS, columns)


class ProductByRowsApart:
    """`left @ right`, contiguous, by calls each of which stores whole vectors. `right` lies transposed.

        logits = x @ table.t()    2-byte numbers, 30522 columns: rows start at multiples of 61044 bytes
        ->
        rows 0, 4, 8, ...         columns 0 to 30520 by one call: these rows start at multiples of 16 * 15261 bytes
        rows 1, 5, 9, ...         columns 6 to 30518 by another, for column 6 of row 1 starts at 61044 + 12 = 16 * 3816
        ...                       and the first and the last eight columns of all rows before these, by two narrow calls

    The library's fast kernels store vectors of sixteen bytes, and take any distance between rows that sixteen divides.
    So what a caller gets at eager's strides needs no wider result that is copied. (4096 rows of 50257 sums of 768 take
    1030 us on an H200 padded and copied, and 554 us so.) Calls that add a bias want a result without gaps, so it is one
    more number of each sum: a column of ones beside the left matrix, and the bias beside the right one.
    """

    __name__ = "product_by_rows_apart"

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        columns = right.shape[1]
        result = left.new_empty((left.shape[0], columns))
        for edge in (slice(0, ALIGNED_ELEMENTS), slice(columns - ALIGNED_ELEMENTS, columns)):
            torch.mm(left, right[:, edge], out=result[:, edge])
        apart = rows_apart(columns)
        for first in range(min(apart, left.shape[0])):
            start = -first * columns % ALIGNED_ELEMENTS
            whole = slice(start, start + (columns - start) // ALIGNED_ELEMENTS * ALIGNED_ELEMENTS)
            torch.mm(left[first::apart], right[:, whole], out=result[first::apart, whole])
        return result


BY_ROWS_APART = ProductByRowsApart()
