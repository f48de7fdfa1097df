"""Unroll reductions over windows on a GPU: each lane takes a window of its own.

    x < 56, r < 3: v = reduce max a[2*x + r - 1]    ->    x < 56: v = max(max(a[2*x - 1], a[2*x]), a[2*x + 1])

A tile that spreads a window of nine over lanes has sixteen for it, exchanges values between them, and loads what
windows share once for each. Written out, neighbouring lanes are neighbouring results, which lie next to each other in
memory where the reduction does not go along it (channels-last), or share most of what they load where windows overlap.
On an H200 the largest of 3 x 3 of 32 x 64 x 400 x 400 bfloat16, in channels-last, took 3,218 us as a tile; the bytes
take 195. Rows of a table that are looked up, eight for each result, are windows as well.

Of a window that is too long to be written out, the last loop is left. Where what windows hold is multiplied by what is
the same for all of them, as in a depthwise convolution, a lane goes over several (`together`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from compiler.ir.body import Access, Body, operands_of
from compiler.ir.index import Dim, points_of
from compiler.ir.size import hint, known
from compiler.schedule.group import Group
from compiler.schedule.together import several_to_a_lane
from compiler.schedule.unroll import written_out
from compiler.schedule.vectors import is_moved

#: Elements of a window that a lane goes over by itself, and of one that shares nothing with its neighbours.
MOST_IN_A_LANE, MOST_APART = 49, 16
#: Elements of a window that are written out where a lane has several windows.
MOST_WRITTEN = 31
#: A row of so few that are neighbours in memory is no row to go along, nor an odd one of so few. On an H200 sums of
#: rows of 3, 5 and 7 bfloat16 took 44, 42 and 42 us so and 58, 67 and 52 as tiles, which are powers of two; of 6 it
#: was 42 and 38.
_SHORT_RUN, _SHORT_ODD_RUN = 2, 7
#: Elements of a row that is looked up, for lanes side by side to load whole sectors of it.
_LONG_ROW = 32
#: How many times the elements of a buffer are read, at the least, where windows overlap.
_OVERLAP = 1.5
#: Results for each element of what windows are multiplied by.
MANY_RESULTS = 16
#: Elements between neighbours' rows from which on each lane loads memory that its neighbours do not.
_FAR = 4
#: The longest text of one lane, in instructions.
LONGEST = 1024


@lru_cache(maxsize=4096)
def over_windows(group: Group) -> Group | None:
    """The group as lanes run it that each go over a window of their own; None where its reductions are none of windows,
    or where something of it is needed for each element of a window."""
    count = group.space.reduction_numel
    if not group.space.r or not isinstance(count, int) or not 1 < count <= MOST_IN_A_LANE:
        return None
    reads = list(_reads_of_windows(group))
    shared = [read for read in reads if _overlap(read)]
    # What all windows are multiplied by is read by all of them.
    rest = [read for read in reads if read not in shared and not (shared and _is_of_all(read, group))]
    rest += [read for read in reads if _is_row_of_own(read.access, group)]
    if not reads or (rest and not (count <= MOST_APART and _lie_side_by_side(group, reads))):
        return None
    text = sum(len(member.body.instructions) for member in group.members)
    is_multiplied = len(shared) < len(reads)
    kept = group.space.r[-1:] if text * count > LONGEST or (is_multiplied and count > MOST_WRITTEN) else ()
    if text * count > LONGEST * prod(known(dim.size) for dim in kept):
        return None
    if kept and all(dim.size == 1 for dim in group.space.x):  # one result: there are no lanes to loop side by side
        return None
    written = written_out(group, kept)
    if written is None or not is_multiplied:
        return written
    return several_to_a_lane(written, group.space.r, [read.access for read in shared])


class _Read(NamedTuple):
    """An access, and the loops that its index depends on."""

    access: Access
    dims: frozenset[Dim]
    is_anywhere: bool


def _reads_of_windows(group: Group) -> Iterator[_Read]:
    """The reads of memory that differ from one element of a window to the next."""
    for member in group.members:
        for access in member.body.reads:
            dims = access.index.dims.union(*(_dims_of(member.body, atom.value) for atom in access.index.indirections))
            if access.buffer not in group.produced and not dims.isdisjoint(group.space.r):
                loaded = member.body.depends_on_loads
                yield _Read(access, dims, any(atom.value in loaded for atom in access.index.indirections))


def _dims_of(body: Body, number: int) -> frozenset[Dim]:
    """The loops that an instruction depends on."""
    found: set[Dim] = set()
    open_, seen = [number], {number}
    while open_:
        instruction = body.instructions[open_.pop()]
        found |= instruction.index.dims if instruction.index is not None else set()
        needed = operands_of(instruction) - seen
        seen |= needed
        open_ += needed
    return frozenset(found)


def _overlap(read: _Read) -> bool:
    """Whether points read far more elements than there are between the first and the last that one reads."""
    low, high = read.access.index.bounds
    elements = points_of(read.dims)
    return not read.is_anywhere and elements >= _OVERLAP * (hint(high) - hint(low) + 1)


def _is_of_all(read: _Read, group: Group) -> bool:
    """Whether it has few elements beside the results, each of which is read for many of these."""
    elements = points_of(read.dims)
    return not read.is_anywhere and elements * MANY_RESULTS <= hint(group.space.numel)


def _is_row_of_own(access: Access, group: Group) -> bool:
    """Whether neighbouring points read rows that begin far apart, as where each row of a table meets each of another.
    On an H200 the distances of 8,192 and 256 rows of 16 float32 take 45 us so, 17 as tiles; windows of 16, four apart,
    24 and 17."""
    lane = group.space.x[-1] if group.space.x else None
    steps = [abs(hint(step)) for atom, step in access.index.terms if lane is not None and is_moved(atom, step, lane)]
    step = min(steps, default=0)
    runs = [hint(dim.size) for dim in access.fast_dims & frozenset(group.space.r)]
    return step >= _FAR and any(not _is_short_run(size) for size in runs)


def _lie_side_by_side(group: Group, reads: list[_Read]) -> bool:
    """Whether neighbours in memory are read for different windows, but for short runs. Rows that are looked up lie
    side by side where they are long and go along the results; what all results of a row share costs one load."""
    r_dims = frozenset(group.space.r)
    last = group.space.x[-1] if group.space.x and hint(group.space.x[-1].size) >= _LONG_ROW else None

    def goes_along(access: Access) -> bool:
        return any(not _is_short_run(hint(dim.size)) for dim in access.fast_dims & r_dims)

    def is_row_looked_up(read: _Read) -> bool:
        return read.access.index.dims.isdisjoint(r_dims) and last in read.access.fast_dims

    if not any(read.is_anywhere for read in reads):
        return not any(goes_along(read.access) for read in reads)
    return last is not None and all(last not in read.dims or is_row_looked_up(read) for read in reads)


def _is_short_run(size: int) -> bool:
    return size <= _SHORT_RUN or (size <= _SHORT_ODD_RUN and size % 2 == 1)
