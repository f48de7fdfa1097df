"""What each pass of a looped kernel computes and loads, told by a group alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compiler.ir.body import Access
from compiler.ir.nodes import Layout
from compiler.ir.size import hint
from compiler.schedule.group import Group, Member

#: Of what a C++ kernel keeps between passes, in arrays: the least cost (see `OpInfo.cost`), and the most bytes of a
#: row, half of a small first-level cache and less.
KEPT_COST, KEPT_IN_ARRAYS = 8, 1 << 16


def writes_rows(group: Group) -> bool:
    """Whether something is stored for each point of the reduction loops."""
    writes = [a for m in group.members for a in m.body.writes if a.buffer in group.stored]
    return any(not access.index.dims.isdisjoint(group.space.r) for access in writes)


def passes_over_r(group: Group) -> tuple[frozenset[Access], ...]:
    """What each pass of a looped kernel loads: all that its results need and that varies along the reduction loops."""
    return tuple(frozenset(_loads(found, group)) for found in members_of_passes(group)) or (frozenset(),)


def times_computed(group: Group) -> dict[str, int]:
    """In how many passes each member is computed, of those that several compute, where nothing of a row is kept."""
    passes = members_of_passes(group, group.single_pass)
    times = Counter(m.name for members in passes for m in members if not m.body.dims.isdisjoint(group.space.r))
    return {name: count for name, count in times.items() if count > 1}


def times_computed_by_cpu(group: Group, layouts: Mapping[str, Layout]) -> dict[str, int]:
    """The same of a C++ kernel, which keeps costly values of rows while they fit (`codegen/cpp/kept.py`). What is cheap
    takes no longer in vectors than to load it."""
    times = times_computed(group)
    costly = [m for m in group.members if m.name in times and m.body.operations >= KEPT_COST]
    row = hint(group.space.reduction_numel) * sum(layouts[member.name].dtype.itemsize for member in costly)
    again = [] if row <= KEPT_IN_ARRAYS else costly[:-1] if writes_rows(group) else costly
    return {member.name: times[member.name] for member in again}


def members_of_passes(group: Group, early: frozenset[str] = frozenset()) -> list[list[Member]]:
    """What each pass of a looped kernel computes. Sums of `early` are made in the pass of what they wait for."""
    r_dims = group.space.r
    by_name = {member.name: member for member in group.members}
    ready: dict[str, int] = {}
    roots: dict[int, list[Member]] = {}
    for member in group.members:
        before = max((ready[a.buffer] for a in member.body.reads if a.buffer in ready), default=0)
        before -= member.name in early
        is_reduction = member.body.reduction is not None
        ready[member.name] = before + (is_reduction and not member.is_across)
        writes_r = any(not a.index.dims.isdisjoint(r_dims) for a in member.body.writes if a.buffer in group.stored)
        # What is reduced across x of a result of each row is gathered after the passes.
        is_gathered = member.is_across and member.body.dims.isdisjoint(r_dims)
        if (is_reduction and not is_gathered) or writes_r or member.node.is_scatter:
            roots.setdefault(before, []).append(member)
    passes: list[list[Member]] = []
    for _, open_ in sorted(roots.items()):
        seen = dict[str, Member]()
        while open_:
            member = open_.pop()
            if member.name in seen:
                continue
            seen[member.name] = member
            made = (by_name[access.buffer] for access in member.body.reads if access.buffer in by_name)
            open_ += [other for other in made if other.body.reduction is None]
        passes.append(list(seen.values()))
    return passes


def _loads(members: Iterable[Member], group: Group) -> Iterator[Access]:
    """What these load that varies along the reduction loops."""
    for access in (access for member in members for access in member.body.reads if access.buffer not in group.produced):
        if access.index.indirections or not access.index.dims.isdisjoint(group.space.r):
            yield access
