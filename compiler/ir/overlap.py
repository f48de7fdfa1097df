"""How many bytes several parts of one memory have together: what lies in two of them counts once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import prod
from typing import NamedTuple


class Part(NamedTuple):
    """A part of a memory, in bytes: its first, the one after its last, and how many it has.

    `rows` tells of a part that is several runs of equal length where the next ones begin: how far apart, and how many,
    along each of the loops over them, the nearest first."""

    first: int
    after: int
    size: int
    rows: tuple[tuple[int, int], ...] = ()


def part(first: int, after: int, size: int, loops: Iterable[tuple[int, int]], itemsize: int) -> Part:
    """The part that loops touch which have these strides, in elements, and sizes."""
    run, rows = 1, list[tuple[int, int]]()
    for stride, count in sorted((abs(stride), count) for stride, count in loops if stride and count > 1):
        if stride == run and not rows:
            run *= count
        else:
            rows.append((stride * itemsize, count))
    is_whole = size == run * itemsize * prod(count for _, count in rows)
    return Part(first, after, size, tuple(rows) if is_whole else ())


def bytes_together(parts: Iterable[Part]) -> int:
    """Bytes of parts of one memory. Parts that overlap have no more than they span together: rows 2 to 9 and rows 4 to
    11 are ten rows, not sixteen, and so are columns."""
    total = begin = end = size = 0
    for first, after, own, _ in sorted(_with_columns_joined(parts)):
        if first >= end:
            total += min(size, end - begin)
            begin, end, size = first, after, own
        else:
            end, size = max(end, after), size + own
    return total + min(size, end - begin)


def _with_columns_joined(parts: Iterable[Part]) -> list[Part]:
    """The parts, those as one whose runs lie in the same rows."""
    alike: defaultdict[tuple[tuple[int, int], ...], list[Part]] = defaultdict(list)
    for one in parts:
        alike[one.rows].append(one)
    found = alike.pop((), [])
    for rows, of_rows in alike.items():
        count = prod(number for _, number in rows)
        runs = [Part(one.first, one.first + one.size // count, one.size // count) for one in of_rows]
        first = min(run.first for run in runs)
        if len(of_rows) > 1 and max(run.after for run in runs) - first <= rows[0][0]:
            found.append(Part(first, max(one.after for one in of_rows), count * bytes_together(runs)))
        else:
            found += of_rows
    return found
