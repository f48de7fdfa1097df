"""What a product of two half matrices is expected to take, by what its sizes are multiples of.

    microseconds = start + max(operations of whole tiles / (share * peak), bytes / bandwidth)

The library's fast kernels load and store eight elements of two bytes at a time. A size counts where a matrix is
contiguous along it: of rows that are no multiple of eight elements the next one starts elsewhere in its vector. Where
none is, as along the rows of a product of layers, an odd size costs nothing. Rows that only lie further apart do not
help: a product into 30,522 columns of rows of 30,528 takes as long as into rows of 30,522.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.devices import Device
from compiler.ir.library_calls import ALIGNED_ELEMENTS, rows_apart
from compiler.passes.padding.choice import Sizes

#: The share of the peak that cuBLAS reaches where sizes are multiples of 8, 4, 2 or of nothing. By 46 large products
#: on one H200 (torch 2.11), 1024 rows or more: 0.58 to 0.82; 0.24 to 0.28, whether 4 or only 2 divides; and 0.095 where
#: the columns alone are odd, 0.13 to 0.15 where the inner size or the rows are. Assumed of other devices.
SHARE: Mapping[int, float] = {8: 0.74, 4: 0.25, 2: 0.25, 1: 0.11}
#: Rows and columns of a tile of the kernels for sizes that eight does not divide: 32 rows of 50,257 columns take 116 us
#: and 128 rows 132 us.
TILE = 128
#: A line of memory in such elements. Matrices whose rows start at whole lines are loaded fastest: with rows of 776 the
#: calls of 50257 columns take 677 us, and with rows of 768 554.
LINE = 64
#: How much longer the narrow call of a few columns takes than reading its left matrix.
EDGE = 2.0
#: Padding is taken where it is expected to take less than this share of the time without.
WORTH = 0.9


def padded(size: int) -> int:
    return -(-size // ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def alignment(size: int) -> int:
    """The largest of 8, 4, 2 and 1 that divides `size`."""
    return next(piece for piece in SHARE if size % piece == 0)


def counting(left: torch.Tensor, right: torch.Tensor) -> tuple[bool, bool, bool]:
    """Whether rows, inner size and columns of a product count: whether a matrix is contiguous along them. The result
    is along its columns."""
    is_left_along_rows = left.stride(1) != 1 and left.stride(0) == 1
    is_right_along_inner = right.stride(1) != 1 and right.stride(0) == 1
    return is_left_along_rows, not is_left_along_rows or is_right_along_inner, True


def product_us(sizes: Sizes, least_alignment: int, itemsize: int, device: Device) -> float:
    rows, inner, columns = sizes
    tile = TILE if least_alignment < ALIGNED_ELEMENTS else 1
    points = -(-rows // tile) * tile * -(-columns // tile) * tile
    work = 2e6 * points * inner / (SHARE[least_alignment] * device.half_product_flops)
    moved = itemsize * (rows * inner + inner * columns + rows * columns)
    return start_us(device) + max(work, 1e6 * moved / device.bandwidth)


def apart_us(sizes: Sizes, itemsize: int, device: Device) -> float:
    """By calls of rows that lie apart: a whole product at the rate of the fast kernels, with a start for each call, and
    two narrow ones that read the left matrix."""
    rows, inner, columns = sizes
    calls = rows_apart(columns)
    edges = 2 * (start_us(device) + 1e6 * EDGE * itemsize * rows * inner / device.bandwidth)
    return product_us(sizes, ALIGNED_ELEMENTS, itemsize, device) + (calls - 1) * start_us(device) + edges


def copy_us(moved: int, device: Device) -> float:
    """What a kernel takes that reads and writes so many bytes."""
    return start_us(device) + 1e6 * moved / device.bandwidth


def start_us(device: Device) -> float:
    return device.launch_us + device.latency_us
