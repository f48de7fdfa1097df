"""May two groups become one kernel? Bringing their loops together, and checking that no value is read too early.

`align` looks for a one-to-one change of the guest's loop variables into the host's. It solves for it at a buffer that
both touch: the guest's offset, as an affine formula of its loops, must equal the host's, so

    guest reads   y[d0]              (1024*512 iterations, one loop)
    host writes   y[512*x0 + r0]     (1024 x 512 iterations)
    answer        d0 = 512*x0 + r0

Whatever reorders, splits or merges loops comes out of the same equation, and is returned as a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from compiler.decisions import Refuse
from compiler.ir.index import MOST_KEPT, Dim, Index
from compiler.ir.nodes import ExternNode
from compiler.ir.positions import flatten, invert, unflatten
from compiler.ir.size import product
from compiler.schedule.group import Group, Member, Space

#: Pairs of accesses tried for one pair of groups; more than a few only repeat the same failure.
MOST_EQUATIONS = 12


def align(host: Group, guest: Group, shared: list[str]) -> Mapping[Dim, Index] | Refuse:
    """The guest's loop variables as formulas of the host's, or why there is none."""
    mismatch = _sizes_mismatch(host.space, guest.space)
    if mismatch is not None:
        return mismatch
    equations = (
        (theirs.index, ours.index)
        for buffer in shared
        for theirs in guest.accesses.get(buffer, ())
        for ours in host.accesses.get(buffer, ())
    )
    for guest_index, host_index in islice(equations, MOST_EQUATIONS):
        values = _solve(host.space, guest.space, guest_index, host_index)
        if values is not None and (not guest.has_scan or _keeps_order(host.space, guest.space, values)):
            return values
    if _is_read_alike(host, guest, shared):
        return {dim: Index.of(dim) for dim in guest.space.dims}
    return Refuse("index.no_common_loops")


def _is_read_alike(host: Group, guest: Group, shared: list[str]) -> bool:
    """Whether both have the same loops and read a buffer at the same indices of them. Windows that overlap are read so
    that no index tells the loops apart, and so are single elements of the short rows that the host reduces."""
    if host.space.x != guest.space.x or guest.space.r not in ((), host.space.r):
        return False
    is_of_rows = bool(host.space.r) and not guest.space.r
    return any(
        theirs.index == ours.index or (is_of_rows and _go_along(theirs.index, ours.index, host.space))
        for buffer in shared
        for theirs in guest.accesses.get(buffer, ())
        for ours in host.accesses.get(buffer, ())
    )


def _go_along(one: Index, two: Index, space: Space) -> bool:
    """Whether two indices are as far apart at each point of the independent loops, which they tell apart."""
    steps = [(one.stride(dim), two.stride(dim)) for dim in space.x if dim.size != 1]
    return bool(steps) and all(a is not None and a == b and a != 0 for a, b in steps)


def _sizes_mismatch(host: Space, guest: Space) -> Refuse | None:
    everything = host.numel * host.reduction_numel
    if guest.r:
        if host.numel == guest.numel and host.reduction_numel == guest.reduction_numel:
            return None
        if everything == guest.numel * guest.reduction_numel and host.r:
            return Refuse("shape.reduction_axes")
    elif guest.numel == everything or (host.r and guest.numel == host.numel):
        return None
    return Refuse("shape.numel")


@lru_cache(maxsize=MOST_KEPT)
def _solve(host: Space, guest: Space, guest_index: Index, host_index: Index) -> Mapping[Dim, Index] | None:
    """Solve guest_index(guest loops) = host_index(host loops) for a one-to-one change of variables."""
    if host_index.indirections or guest_index.indirections:
        return None
    if invert(host_index, host.dims, host_index) is None:
        return None
    values = invert(guest_index, guest.dims, host_index)
    if values is None:
        return None
    free_host = [dim for dim in host.dims if dim not in host_index.dims and dim.size != 1]
    free_guest = [dim for dim in guest.dims if dim not in guest_index.dims and dim.size != 1]
    if not _match_free(host, free_host, free_guest, values):
        return None
    driving = {dim for index in values.values() for dim in index.dims}
    is_onto = product(dim.size for dim in driving) == guest.numel * guest.reduction_numel
    return values if is_onto and _keeps_levels(host, guest, values) else None


def _match_free(host: Space, free_host: list[Dim], free_guest: list[Dim], values: dict[Dim, Index]) -> bool:
    """Pair the loops that the solved offset does not mention, in order; extends `values`."""
    if not free_guest:
        # The guest runs once for each x, and the host's r is not its concern.
        return set(free_host) == {dim for dim in host.r if dim.size != 1} if free_host else True
    if product(d.size for d in free_host) != product(d.size for d in free_guest):
        return False
    position = flatten([Index.of(dim) for dim in free_host], [dim.size for dim in free_host])
    values.update(zip(free_guest, unflatten(position, [dim.size for dim in free_guest]), strict=True))
    return True


def _keeps_levels(host: Space, guest: Space, values: Mapping[Dim, Index]) -> bool:
    """A reduced loop may only come from reduced loops, an independent one only from independent ones."""
    if not guest.r:
        return True
    x_dims, r_dims = frozenset(host.x), frozenset(host.r)
    return all(values[dim].dims <= x_dims for dim in guest.x if dim in values) and all(
        values[dim].dims <= r_dims for dim in guest.r if dim in values
    )


def _keeps_order(host: Space, guest: Space, values: Mapping[Dim, Index]) -> bool:
    """Whether the guest's reduction loops run through the same points in the same order in the host's: a scan is not
    the same in any other."""
    theirs = flatten([values.get(dim, Index.number(0)) for dim in guest.r], [dim.size for dim in guest.r])
    return theirs == flatten([Index.of(dim) for dim in host.r], [dim.size for dim in host.r])


def move(guest: Group, values: Mapping[Dim, Index]) -> tuple[Member, ...]:
    """The guest's members over the host's loops."""
    complete = {dim: values.get(dim, Index.number(0)) for dim in guest.space.dims}
    changed = {dim: index for dim, index in complete.items() if index != Index.of(dim)}
    if not changed:
        return guest.members
    return tuple(
        replace(
            m, body=m.body.substitute(changed), transform=m.transform.then(changed, (*m.node.x_dims, *m.node.r_dims))
        )
        for m in guest.members
    )


def reads_match_writes(members: tuple[Member, ...]) -> Refuse | None:
    """Whether every value that stays in a register is read at the point of the loop that makes it."""
    written = {a.buffer: (a.index, m.name) for m in members for a in m.body.writes}
    for member in members:
        for access in member.body.reads:
            if access.buffer not in written:
                continue
            index, maker = written[access.buffer]
            if access.index != index:
                numbers: dict[str, Any] = {
                    "shared": access.buffer,
                    "written": index,
                    "read": access.index,
                    "writer": maker,
                    "reader": member.name,
                }
                return Refuse("index.different_positions", numbers)
    return None


def across_comes_last(members: tuple[Member, ...], space: Space) -> Refuse | None:
    """Whether what is known only when every point of x is done is used then and not before: by no member of the loops
    over x, by no second reduction across x, and together with nothing that depends on x."""
    across = frozenset(member.name for member in members if member.is_across)
    made = frozenset(member.name for member in members)
    for member in members if across else ():
        comes_last = member.is_across and member.body.reduction is None
        for access in (*member.body.reads, *(member.body.writes if comes_last else ())):
            shared, is_of_loops = access.buffer, not access.index.dims.isdisjoint(space.x)
            is_wrong = shared in made - across or is_of_loops if comes_last else shared in across
            if is_wrong:
                return Refuse("dependency.across", {"shared": shared, "writer": shared, "reader": member.name})
    return None


def streams_differ(one: Group | ExternNode, two: Group | ExternNode) -> Refuse | None:
    """Whether the program puts the two on different streams: a kernel is in one."""
    if one.stream == two.stream:
        return None
    return Refuse("kind.other_stream", {"stream_a": _stream_name(one.stream), "stream_b": _stream_name(two.stream)})


def _stream_name(stream: int | None) -> str:
    return "the stream of the call" if stream is None else f"stream {stream} of the program"


def scatter_between(first: Group, second: Group) -> Refuse | None:
    """Whether a scatter stands between the two: it updates what the other reads, or in place what the other fills."""
    for member in first.members:
        if member.node.is_scatter and member.name in second.read_buffers:
            return Refuse("dependency.scatter", {"scatter": member.name, "shared": member.name})
    for member in second.members:
        if member.node.updates in first.produced:
            return Refuse("dependency.mutation", {"scatter": member.name, "shared": member.node.updates})
    return None


def in_order(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Members such that each follows those whose buffers it reads; otherwise as given."""
    if _are_in_order(members):
        return members
    waiting = {member.name: member for member in members}
    done: list[Member] = []

    def append(member: Member) -> None:
        if waiting.pop(member.name, None) is None:
            return
        for buffer in (access.buffer for access in member.body.reads):
            if buffer in waiting:
                append(waiting[buffer])
        done.append(member)

    for member in members:
        append(member)
    return tuple(done)


def _are_in_order(members: tuple[Member, ...]) -> bool:
    to_come = {member.name for member in members}
    for member in members:
        to_come.discard(member.name)
        if not to_come.isdisjoint(member.body.loads):
            return False
    return True


def hosts(a: Group, b: Group) -> Iterator[tuple[Group, Group]]:
    """Which of the two keeps its loops (the first of each pair): one that reduces, else the finer, else either."""

    def fineness(group: Group) -> tuple[bool, int]:
        return bool(group.space.r), len(group.space.x) + len(group.space.r)

    first, second = (a, b) if fineness(a) > fineness(b) else (b, a)
    yield first, second
    if bool(first.space.r) == bool(second.space.r):
        yield second, first
