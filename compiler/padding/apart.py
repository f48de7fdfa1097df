"""A product into rows of a length that eight does not divide, by calls each of which stores whole pieces.

    logits = x @ table.t()      2-byte numbers, 30522 columns: rows start at multiples of 61044 bytes
    ->
    rows 0, 4, 8, ...     columns 0 to 30520 by one call: these rows start at multiples of 4 * 61044 = 16 * 15261 bytes
    rows 1, 5, 9, ...     columns 6 to 30518 by another, for column 6 of row 1 starts at 61044 + 12 = 16 * 3816
    ...                   and the first and the last eight columns of all rows before these, by two narrow calls

The library's fast kernels store pieces of sixteen bytes, and take any distance between rows that sixteen divides. So
what a caller gets at eager's strides needs no wider result that is copied. (4096 rows of 50257 sums of 768 take 1030 us
on an H200 padded and copied, and 554 us so.) Calls that add a bias want a result without gaps, so it is one more number
of each sum: a column of ones beside the left matrix, and the bias beside the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from compiler.padding.price import PIECE, rows_apart

if TYPE_CHECKING:
    from compiler.padding.write import Product


def may_be_apart(product: Product) -> bool:
    """Whether both matrices are contiguous along the sum, in whole pieces, so that rows and columns may be left out as
    one likes, and a bias has one number for each column."""
    left, right = (operand.meta["val"] for operand in (product.left, product.right))
    inner, columns = right.shape
    lies_so = left.stride() == (inner, 1) and right.stride() == (1, inner) and inner % PIECE == 0
    is_plain = product.bias is None or (not product.node.kwargs and product.bias.meta["val"].shape == (columns,))
    return lies_so and is_plain and columns % PIECE != 0 and columns > 2 * PIECE


class ProductByRowsApart:
    """`left @ right`, contiguous. `right` lies transposed."""

    __name__ = "product_by_rows_apart"

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        columns = right.shape[1]
        result = left.new_empty((left.shape[0], columns))
        for edge in (slice(0, PIECE), slice(columns - PIECE, columns)):
            torch.mm(left, right[:, edge], out=result[:, edge])
        apart = rows_apart(columns)
        for first in range(min(apart, left.shape[0])):
            start = -first * columns % PIECE
            whole = slice(start, start + (columns - start) // PIECE * PIECE)
            torch.mm(left[first::apart], right[:, whole], out=result[first::apart, whole])
        return result


BY_ROWS_APART = ProductByRowsApart()
