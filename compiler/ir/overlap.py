"""How many bytes several parts of one memory have together: what lies in two of them counts once."""

from __future__ import annotations

from collections.abc import Iterable


def bytes_together(parts: Iterable[tuple[int, int, int]]) -> int:
    """Bytes of parts of one memory, each given by its first byte, the one after its last, and how many bytes it has.
    Parts that overlap have no more than they span together: rows 2 to 9 and rows 4 to 11 are ten rows, not sixteen."""
    total = begin = end = size = 0
    for first, after, own in sorted(parts):
        if first >= end:
            total += min(size, end - begin)
            begin, end, size = first, after, own
        else:
            end, size = max(end, after), size + own
    return total + min(size, end - begin)
