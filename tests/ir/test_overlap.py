"""Bytes of parts that overlap, beside the union of their bytes one by one."""

from __future__ import annotations

from itertools import product
from random import Random

from compiler.ir.overlap import Part, bytes_together, part

Loops = list[tuple[int, int]]


def elements(first: int, loops: Loops) -> set[int]:
    steps = [[stride * position for position in range(size)] for stride, size in loops]
    return {first + sum(point) for point in product(*steps)}


def part_of(first: int, loops: Loops) -> Part:
    own = elements(first, loops)
    return part(4 * min(own), 4 * max(own) + 4, 4 * len(own), loops, 4)


def test_columns_of_the_same_rows_count_once() -> None:
    rows = (16, 5)
    pieces: list[tuple[int, Loops]] = [(2, [rows, (1, 4)]), (5, [(1, 3), rows]), (12, [rows]), (4, [rows, (1, 1)])]
    union = set[int]().union(*(elements(first, loops) for first, loops in pieces))
    assert bytes_together(part_of(first, loops) for first, loops in pieces) == 4 * len(union)
    # From one end of a row to the other, and into the next: no figure below the truth.
    assert bytes_together([part_of(14, [rows, (1, 2)]), part_of(16, [rows, (1, 2)])]) == 4 * 20


def test_no_figure_is_below_the_union_or_above_the_sum() -> None:
    random = Random(0)
    for _ in range(500):
        pieces: list[tuple[int, Loops]] = []
        for _ in range(random.randint(1, 4)):
            loops = [(stride, random.randint(1, 4)) for stride in random.sample((1, 2, 4, 8, 24), 3)]
            pieces.append((random.randint(0, 12), loops))
        union = set[int]().union(*(elements(first, loops) for first, loops in pieces))
        found = bytes_together(part_of(first, loops) for first, loops in pieces)
        assert 4 * len(union) <= found <= 4 * sum(len(elements(first, loops)) for first, loops in pieces)
