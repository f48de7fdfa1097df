"""How a group touches memory: its loads and stores, how often they happen, and how neighbouring lanes walk them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compiler.ir.body import Access
from compiler.ir.index import Dim
from compiler.ir.nodes import Layout
from compiler.ir.overlap import Part, part
from compiler.ir.size import hint
from compiler.schedule.group import Group

#: How neighbouring lanes of a kernel walk a buffer: element by element; along another loop than the lanes, or with
#: gaps; at indices that are loaded; or all at one element, which is then used many times.
AccessPattern = Literal["contiguous", "strided", "gathered", "broadcast"]


def touched_bytes(access: Access, count: int, layout: Layout) -> int:
    """Distinct bytes that an access touches which happens `count` times in a whole run of the space."""
    elements = access.elements
    if access.index.indirections:
        elements = count if access.most is None else min(count, access.most)
    begin, end = touched_span(access, layout)
    return min(elements * layout.dtype.itemsize, layout.bytes, max(end - begin, 0))


def touched_span(access: Access, layout: Layout) -> tuple[int, int]:
    """The first byte of a buffer that an access may touch, and the one after the last. Where a mask holds, it may be
    computed for more than there is."""
    low, high = access.index.bounds
    size, last = layout.dtype.itemsize, hint(layout.storage_numel) - 1
    return max(hint(low), 0) * size, (min(hint(high), last) + 1) * size


def touched_part(access: Access, size: int, layout: Layout) -> Part:
    """The part of a buffer that an access touches of which it touches `size` bytes."""
    begin, end = touched_span(access, layout)
    low, high = access.index.bounds
    is_inside = 0 <= hint(low) and hint(high) < hint(layout.storage_numel)
    if not access.index.is_affine or not is_inside:
        return Part(begin, end, size)
    loops = ((hint(stride), hint(atom.size)) for atom, stride in access.index.terms if isinstance(atom, Dim))
    return part(begin, end, size, loops, layout.dtype.itemsize)


class Touch(NamedTuple):
    """One access of a group that reaches memory: the distinct bytes that it touches, and how often it happens in a
    whole run of the space. An index that is computed from the loops alone, as in an interpolation, is near that of the
    neighbouring lane; one that is loaded may be anywhere."""

    access: Access
    bytes: int
    times: int
    is_store: bool
    is_anywhere: bool
    #: Of the store of a part, the whole in whose memory it is.
    whole: str | None = None


def touches_of(group: Group, layouts: Mapping[str, Layout]) -> list[Touch]:
    """The loads and stores of the group that reach memory, in order."""
    found: list[Touch] = []
    for member, count in zip(group.members, iterations(group), strict=True):
        for access in member.body.reads:
            if access.buffer not in group.produced:
                size = touched_bytes(access, count, layouts[access.buffer])
                is_anywhere = any(atom.value in member.body.depends_on_loads for atom in access.index.indirections)
                found.append(Touch(access, size, count, False, is_anywhere))
        if member.name in group.stored:
            for access in member.body.writes:
                size = touched_bytes(access, count, layouts[access.buffer])
                is_anywhere = bool(access.index.indirections)
                found.append(Touch(access, size, count, True, is_anywhere, member.node.part_of))
    return found


@dataclass(frozen=True)
class Traffic:
    """The distinct accesses of a group that reach memory, and the loop that neighbouring lanes follow: the one along
    which most bytes are contiguous, the last of equals."""

    touches: tuple[Touch, ...]
    lane: Dim | None

    @property
    def stores(self) -> list[Touch]:
        return [touch for touch in self.touches if touch.is_store]


def traffic_by(group: Group, all_touches: Sequence[Touch]) -> Traffic:
    """How `group` touches memory, by its `touches_of`."""
    touches: dict[Access, Touch] = {}
    contiguous: defaultdict[Dim, int] = defaultdict(int)
    for touch in all_touches:
        if touch.access not in touches:
            touches[touch.access] = touch
            for dim in touch.access.fast_dims:
                contiguous[dim] += touch.bytes
    lane: Dim | None = None
    for dim in group.space.dims:
        if lane is None or contiguous.get(dim, 0) >= contiguous.get(lane, 0):
            lane = dim
    return Traffic(tuple(touches.values()), lane)


def pattern_of(access: Access, lane: Dim | None) -> AccessPattern:
    """How lanes along `lane` walk a buffer."""
    if access.index.indirections:
        return "gathered"
    if lane is None or lane not in access.index.dims:
        return "broadcast"
    return "contiguous" if lane in access.fast_dims else "strided"


def iterations(group: Group) -> list[int]:
    """How often the body of each member runs: at every point of all loops, or of the independent ones alone."""
    points, r_dims = hint(group.space.numel), group.space.r
    if not r_dims:
        return [points] * len(group.members)
    everywhere = points * hint(group.space.reduction_numel)
    return [
        everywhere
        if (member.body.is_collective and not member.is_across) or not member.body.dims.isdisjoint(r_dims)
        else points
        for member in group.members
    ]
