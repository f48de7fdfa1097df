"""Reductions across memory, whose neighbours there are different rows: columns of a matrix, channels of an image.

    held    x: 32 columns, r: all of it     a program reads its columns once, whole lines of the cache from each row

Lanes lie along the columns, each with some elements of each, and the threads of a program share the rows among them,
which they join through shared memory: so a program may hold a block of columns where it could not hold the rows of a
matrix that lies the other way.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.devices import Device

WARP = 32
#: Bytes of a row that a program takes: whole lines of the cache, or, where columns are long or few, whole sectors.
LINE, SECTOR = 128, 32
#: Elements of one tensor that a thread holds.
HELD_ELEMENTS = 32
#: Threads of a program.
LEAST_THREADS, MOST_THREADS = 128, 1024
#: Words for each element besides those of the tensors that are read again.
BESIDES = 2


@dataclass(frozen=True)
class Columns:
    """A program takes `x_block` columns, `r_block` points of each at a time, by `warps` warps."""

    x_block: int
    r_block: int
    warps: int


def held_columns(rows: int, length: int, tensors: int, itemsize: int, device: Device) -> Columns | None:
    """How programs hold all of `rows` columns of `length` elements, of `tensors` tensors whose elements have `itemsize`
    bytes; None where the registers of a multiprocessor are not enough."""
    padded = _power_above(length)
    words = tensors * max(itemsize // 4, 1) + BESIDES
    budget = device.registers_per_multiprocessor // 2
    x_block = min(LINE // itemsize, _power_above(rows))
    least = min(SECTOR // itemsize, x_block)
    while x_block > least and (padded * x_block * words > budget or rows < x_block * device.multiprocessors):
        x_block //= 2
    if padded * x_block * words > budget:
        return None
    threads = max(min(padded * x_block // HELD_ELEMENTS, MOST_THREADS), LEAST_THREADS)
    return Columns(x_block, padded, threads // WARP)


def _power_above(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
