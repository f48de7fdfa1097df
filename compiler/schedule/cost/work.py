"""What a kernel asks of a device, before any rate is known: bytes by how they are walked, issue slots by unit.

Nothing here is a time; `kernel.py` makes times of it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from compiler.devices import SECTOR, WARP
from compiler.ir.body import Access
from compiler.ir.index import Dim, Mod
from compiler.ir.nodes import Layout
from compiler.ir.ops import HALF_TYPES
from compiler.ir.size import Integer, hint
from compiler.schedule.cost.shape import Shape
from compiler.schedule.cost.slots import IssueUnit, unit_slots
from compiler.schedule.cost.touches import AccessPattern, Touch, Traffic, iterations, pattern_of
from compiler.schedule.group import Group, Space
from compiler.schedule.interleaved import side_by_side

#: Bytes that memory gives at a random address.
GRANULE = 128

#: Several rows as short as that are one program's, and its results are stored together where they lie side by side.
SHORT_ROW = 32

#: A table of so few bytes stays in the first cache of each multiprocessor.
NEAR_CACHE = 1 << 17

#: What a sum takes besides where it is carried along relative to a result that is not complete; see `single_pass.py`.
#: One of squares takes more, one of exponentials, which are powers of two there, less.
SINGLE_PASS = 4
#: One more load of an element by itself, with its address, and what it takes to make a float32 of a half type.
LOAD, CONVERSION = 1, 1
#: The same of a small table whose elements for neighbouring lanes are so many bytes apart or more: each lane's is a
#: piece of work for the cache. On an H200 nine bfloat16 filters of each of 144 channels, loaded so for 14 million
#: results, take 94 us where they take 40 side by side. Those of pairs of float32 lie close enough.
LOAD_APART, BYTES_APART = 14, 16
#: The same of a window that is multiplied by such a table, where what is stored lies along another loop than what
#: windows hold: tiles of both loops load element by element. On an H200 depthwise 3 x 3 of 16 x 96 x 56 x 56 bfloat16,
#: from contiguous into channels-last, takes some 43 us in one kernel.
LOAD_TRANSPOSED = 24


@dataclass(frozen=True)
class Work:
    """What one kernel asks for. Bytes are those of whole sectors where an access has gaps.

    `again` are bytes that later passes over a reduction read once more, `gathered` those that the cache gives at loaded
    indices, `updates` the sectors that single lanes write: scattered, or stored across the lanes. Where many of
    them meet in one element, `crowd` of them wait for each other."""

    bytes: Mapping[AccessPattern, int]
    read: float
    written: float
    again: int
    gathered: int
    updates: int
    crowd: float
    slots: Mapping[IssueUnit, int]
    #: Weighted operations of all passes; see `OpInfo.cost`.
    operations: int = 0
    #: Bytes that the nearest caches give: of elements that several lanes load, or one lane at several points of its
    #: text, all times but the first.
    near: float = 0.0


class _Tally:
    """Adds up the accesses of one group."""

    def __init__(self, layouts: Mapping[str, Layout], lane: Dim | None) -> None:
        self.layouts, self.lane = layouts, lane
        self.walked: dict[str, tuple[AccessPattern, int]] = {}
        self.read: defaultdict[str, float] = defaultdict(float)
        self.written: defaultdict[str, float] = defaultdict(float)
        self.gathered = self.updates = 0
        self.crowd = 0.0

    def add(self, touch: Touch) -> None:
        access, layout = touch.access, self.layouts[touch.access.buffer]
        if touch.bytes >= self.walked.get(access.buffer, ("contiguous", 0))[1]:
            size = touch.bytes * (2 if access.is_update else 1)
            is_near = bool(access.index.indirections) and not touch.is_anywhere
            self.walked[access.buffer] = "contiguous" if is_near else pattern_of(access, self.lane), size
        if touch.is_anywhere:
            self._add_at_loaded_indices(touch, layout)
            return
        itemsize = layout.dtype.itemsize
        whole = hint(layout.storage_numel) * itemsize
        # Neighbours with gaps between them leave their sectors half used.
        moved = min(touch.bytes * max(1, min(access.least_stride, SECTOR // itemsize)), whole)
        side = self.written if touch.is_store else self.read
        memory = touch.whole or access.buffer
        side[memory] = min(side[memory] + moved, max(whole, moved))
        if access.is_update:
            self.read[access.buffer] = moved
            self.updates += touch.times

    def _add_at_loaded_indices(self, touch: Touch, layout: Layout) -> None:
        """Rows or elements at random indices: each moves whole sectors of the cache, and whole granules of memory."""
        access, itemsize = touch.access, layout.dtype.itemsize
        run = access.run * itemsize
        runs = max(touch.times * itemsize // max(run, 1), 1)
        sectors = runs * -(-run // SECTOR)
        whole = max(hint(layout.storage_numel) * itemsize, 1)
        granule = max(run, GRANULE)
        granules = max(whole / granule, 1.0)
        # The expected number of distinct granules that so many random draws hit.
        moved = granules * -math.expm1(-runs / granules) * granule
        self.read[access.buffer] += moved
        if touch.is_store:
            self.written[access.buffer] += moved
            self.updates += sectors
            self.crowd = max(self.crowd, touch.times * itemsize / whole)
        elif whole > NEAR_CACHE:
            self.gathered += sectors * SECTOR


def work_of(
    group: Group,
    traffic: Traffic,
    layouts: Mapping[str, Layout],
    shape: Shape,
    is_gpu: bool,
) -> Work:
    """What the kernel of `group`, which runs by this shape, asks for. On a GPU functions take fewer slots if all
    results are of half types."""
    slots: defaultdict[IssueUnit, int] = defaultdict(int)
    rows = hint(group.space.numel)
    is_fast = is_gpu and stores_half_types(group, layouts)
    operations = 0
    for member, once in zip(group.members, iterations(group), strict=True):
        points = once * shape.times.get(member.name, 1)
        operations += member.body.operations * points
        for unit, is_after, count in unit_slots(member.body, is_fast, traffic.lane, is_gpu):
            slots[unit] += round(count * (rows if is_after else points))
        if shape.carries and member.name in group.single_pass:
            slots["simple"] += SINGLE_PASS * once
    tally = _Tally(layouts, traffic.lane)
    for touch in traffic.touches:
        tally.add(touch)
    walked: defaultdict[AccessPattern, int] = defaultdict(int)
    for walk, size in tally.walked.values():
        walked[walk] += size
    near, loads = _loaded_again(traffic, tally, layouts)
    slots["simple"] += loads
    crossing = [
        touch
        for touch in traffic.touches
        if _is_across(touch.access, shape.across, group.space)
        or _is_transposed(touch.access, traffic.lane, group.space, layouts)
    ]
    gathered, updates = tally.gathered, tally.updates + _sectors_shared(group, traffic, layouts)
    for touch in crossing:
        # Each time anew: what lies between two lanes is needed by programs that may run much later.
        layout = layouts[touch.access.buffer]
        is_for_each_lane = traffic.lane in touch.access.index.dims
        elements = touch.times if is_for_each_lane else touch.bytes // layout.dtype.itemsize
        if touch.is_store:
            updates += elements
        elif layout.bytes <= NEAR_CACHE:
            near += elements * _bytes_of_lane(touch.access, traffic.lane, layout.dtype.itemsize)
        else:
            gathered += elements * _bytes_across(touch.access, layout.dtype.itemsize, group.space)
    return Work(
        bytes=dict(walked),
        read=sum(tally.read.values()),
        written=sum(tally.written.values()),
        again=shape.again,
        gathered=gathered,
        updates=updates,
        crowd=tally.crowd,
        slots=dict(slots),
        operations=operations,
        near=near,
    )


def _loaded_again(traffic: Traffic, tally: _Tally, layouts: Mapping[str, Layout]) -> tuple[float, int]:
    """Of the buffers that the text loads at several points, as windows and interpolations do: the bytes of what is not
    loaded for the first time, in whole sectors, and issue slots that it takes to load and to convert it."""
    loads: defaultdict[str, list[Touch]] = defaultdict(list)
    for touch in traffic.touches:
        if not touch.is_store and not touch.is_anywhere and touch.access.index.terms:
            loads[touch.access.buffer].append(touch)
    near, slots = 0.0, LOAD_TRANSPOSED * _loaded_transposed(traffic, loads, layouts)
    for buffer, touches in loads.items():
        layout, itemsize = layouts[buffer], layouts[buffer].dtype.itemsize
        if len(touches) < 2:
            continue
        if layout.bytes <= NEAR_CACHE:
            apart = [touch for touch in touches if _is_apart(touch.access, traffic.lane, itemsize)]
            slots += LOAD_APART * sum(touch.times for touch in apart)
            continue
        loaded = sum(touch.times * _bytes_of_lane(touch.access, traffic.lane, itemsize) for touch in touches)
        near += max(loaded - tally.read[buffer], 0.0)
        for touch in touches[1:]:
            is_alone = pattern_of(touch.access, traffic.lane) == "strided"
            slots += touch.times * (LOAD * is_alone + CONVERSION * (layout.dtype in HALF_TYPES))
    return near, slots


def _sectors_shared(group: Group, traffic: Traffic, layouts: Mapping[str, Layout]) -> int:
    """The sectors that stores of parts write besides as many as they fill: where elements of a part, or short runs of
    them, lie apart, each sector is written once for every part that has elements in it. On an H200 six parts of 4 Mi
    float32 that alternate take 209 us. Results of points that lie side by side are stored together."""
    of_whole: defaultdict[str, list[Touch]] = defaultdict(list)
    for touch in traffic.stores:
        if touch.whole is not None:
            of_whole[touch.whole].append(touch)
    has_points = hint(group.space.reduction_numel) <= SHORT_ROW
    shared = 0.0
    for whole, touches in of_whole.items():
        itemsize = layouts[whole].dtype.itemsize
        rows = side_by_side([touch.access.index for touch in touches]) if has_points else []
        of_rows = {number for row in rows for number in row}
        runs = [(touches[row[0]], len(row)) for row in rows]
        runs += [(touch, 1) for number, touch in enumerate(touches) if number not in of_rows]
        for touch, together in runs:
            access = touch.access
            length = access.run if access.fast_dims else together
            apart = [abs(hint(step)) for _, step in access.index.terms if step not in (1, -1)]
            # Runs begin at multiples of as many bytes, and end before the next one begins.
            aligned = gcd(SECTOR, itemsize * gcd(hint(access.index.offset), *apart))
            sectors = 1 + (length * itemsize - aligned) / SECTOR
            sectors = min([sectors, *(step * itemsize / SECTOR for step in apart)])
            times = touch.times * together / length
            shared += max(times * (sectors - length * itemsize / SECTOR), 0)
    return round(shared)


def _is_apart(access: Access, lane: Dim | None, itemsize: int) -> bool:
    return pattern_of(access, lane) == "strided" and _bytes_of_lane(access, lane, itemsize) >= BYTES_APART


def _bytes_of_lane(access: Access, lane: Dim | None, itemsize: int) -> int:
    """The bytes that the load of one lane takes up: its part of the sectors that neighbours with gaps between them half
    use, or of the one sector that a warp loads of an element which all its lanes need."""
    stride = access.index.stride(lane) if lane is not None else 1
    if stride == 0:
        return SECTOR // WARP
    return itemsize * min(max(abs(hint(stride)) if stride is not None else 1, 1), SECTOR // itemsize)


def _loaded_transposed(traffic: Traffic, loads: Mapping[str, Sequence[Touch]], layouts: Mapping[str, Layout]) -> int:
    """How many elements of windows are loaded along another loop than what is stored lies along, each of whose values
    has a row of a small table of its own, as channels have filters."""
    stored = frozenset[Dim]().union(*(touch.access.fast_dims for touch in traffic.stores))
    several = [touches for touches in loads.values() if len(touches) > 1]
    tables = [touches for touches in several if layouts[touches[0].access.buffer].bytes <= NEAR_CACHE]
    if not any(touch.access.index.dims & stored for touches in tables for touch in touches):
        return 0
    return sum(
        touch.times
        for touches in several
        for touch in touches
        if touches not in tables and touch.access.fast_dims and touch.access.fast_dims.isdisjoint(stored)
    )


def _is_across(access: Access, across: frozenset[Dim], space: Space) -> bool:
    """Whether the lanes of a reduction touch it with a stride, each element in a sector of its own."""
    if not across or access.index.dims.isdisjoint(space.r) or access.index.dims <= across:
        return False
    if access.fast_dims:
        return access.fast_dims <= across
    # Contiguous along a part of a loop alone, as heads or channels in the last place are.
    strides = [access.index.stride(dim) for dim in space.r if dim in access.index.dims]
    return across.isdisjoint(space.r) and all(stride is not None and abs(hint(stride)) > 1 for stride in strides)


def _bytes_across(access: Access, itemsize: int, space: Space) -> int:
    """What each element takes of the sectors that lanes touch with a stride: a whole one, or less of small gaps."""
    steps = [abs(hint(access.index.step(dim))) for dim in space.r if dim in access.index.dims]
    return SECTOR if access.fast_dims else min(SECTOR, itemsize * min(filter(None, steps), default=SECTOR))


def _is_transposed(access: Access, lane: Dim | None, space: Space, layouts: Mapping[str, Layout]) -> bool:
    """Whether lanes that follow one of the reduction loops go from sector to sector in it, since it lies along another
    of them: a tile has one axis for all of these. On an H200 a group norm of 16 x 64 x 64 x 256 whose channels lie side
    by side, and those of its result apart, takes 325 us in one kernel."""
    if lane not in space.r or not access.fast_dims.isdisjoint((lane, *space.x)):
        return False
    itemsize = layouts[access.buffer].dtype.itemsize
    far = (atom for atom, step in access.index.terms if abs(hint(step)) * itemsize >= SECTOR)
    return any(hint(count) * (SECTOR // itemsize) > WARP for atom in far for count in _counts_of_steps(atom, lane))


def _counts_of_steps(atom: object, lane: Dim) -> Iterator[Integer]:
    """How many values a term of an index takes one by one along a loop, before it begins again; none if it does not."""
    terms = atom.numerator.terms if isinstance(atom, Mod) else ((atom, 1),)
    if (lane, 1) in terms:
        yield atom.divisor if isinstance(atom, Mod) else lane.size


def stores_half_types(group: Group, layouts: Mapping[str, Layout]) -> bool:
    """Whether all that the kernel of `group` stores is of half types."""
    return bool(group.stored) and all(layouts[name].dtype in HALF_TYPES for name in group.stored)
