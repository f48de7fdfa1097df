"""Find stores that lie side by side: a row of results for each point.

    store c[9*x0] = a;  store c[9*x0 + 1] = b;  ...  store c[9*x0 + 8] = i

Each by itself touches a sector for nearly every point, and nine stores write each sector nine times. As one tile,
points by results, they are written as they lie.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from compiler.ir.index import Index

#: More are not put side by side: the tile is as wide as the next power of two.
MOST_TOGETHER = 32


def side_by_side(indices: Sequence[Index]) -> list[list[int]]:
    """The positions in `indices` of those that follow one another, two at the least, in their order."""
    by_rest: defaultdict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for position, index in enumerate(indices):
        if isinstance(index.offset, int) and index.terms and not index.indirections:
            by_rest[index.terms][index.offset] = position
    found: list[list[int]] = []
    for offsets in by_rest.values():
        run: list[int] = []
        last: int | None = None
        for offset in sorted(offsets):
            if last is None or offset != last + 1 or len(run) == MOST_TOGETHER:
                found.append(run)
                run = []
            run.append(offsets[offset])
            last = offset
        found.append(run)
    return [run for run in found if len(run) > 1]
