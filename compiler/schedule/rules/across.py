"""Reductions along different loops of one nest.

    for x: for r: rows[x] += a[x, r]
    for r: for x: columns[r] += b[x, r]        ->    for x: for r: rows[x] += a[x, r];  columns[r] += b[x, r]
    for x: total += rows[x]                    ->    for x: (for r: rows[x] += a[x, r]);  total += rows[x]
    for i: total += b[i]                       ->    for x: (for r: row += b[x, r]);  total += row

The first group, the host, keeps its loops: each program of its kernel takes some rows x. What the second one, the
guest, reduces over x is gathered beside them, for each r or for all, and joined when the last program is done; then the
guest's pointwise rest is computed, once. So gradients of a norm's input and of its weights come from one pass, and the
mean of a loss over rows needs no second kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler.decisions import Refuse
from compiler.ir.index import Dim
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.group import Group, Member, Space
from compiler.schedule.legality import across_comes_last, align, in_order, move, reads_match_writes
from compiler.schedule.names import fused_name
from compiler.schedule.rules.verdicts import Context, join
from compiler.schedule.tiles.programs import COALESCED_POINTS
from compiler.schedule.tiles.registers import registers_for_rows

#: Values of a row that a kernel holds beside its sums, at the least: what it loads and what it computes from that.
VALUES_OF_A_ROW = 4
#: Reductions whose parts may be joined in any grouping and carry no position.
JOINABLE = ("sum", "prod", "min", "max", "any", "all")


class ReduceAcross:
    """See the module's first lines."""

    kind = "across"

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        return bool(shared) and bool(a.space.r) and (bool(b.space.r) or not a.across.isdisjoint(shared))

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        refusal: Refuse | None = None
        for host, guest in _hosts(a, b, shared):
            outcome = self._into(host, guest, shared, context)
            if isinstance(outcome, Group):
                return outcome
            refusal = refusal or outcome
        return refusal or Refuse("shape.reduction_axes")

    def _into(self, host: Group, guest: Group, shared: list[str], context: Context) -> Group | Refuse:
        refusal: Refuse | None = None
        for exchanged in _exchanged(host):
            values = align(exchanged, guest, shared)
            if isinstance(values, Refuse):
                refusal = refusal or values
                continue
            members = in_order((*host.members, *_across(move(guest, values), host)))
            wrong = (
                reads_match_writes(members)
                or across_comes_last(members, host.space)
                or _too_large(members, host, context)
            )
            if wrong is not None:
                return wrong
            inside = {context.graph.number_of(host), context.graph.number_of(guest)}
            return join(fused_name(members), members, host, context, inside)
        assert refusal is not None
        return refusal


def _hosts(a: Group, b: Group, shared: list[str]) -> Iterator[tuple[Group, Group]]:
    """Candidates for the host, first the group that reduces along contiguous memory. Sizes must be known, since they
    decide how many rows a program takes."""
    for host, guest in sorted(((a, b), (b, a)), key=lambda pair: not pair[0].reduces_along_memory(shared)):
        sizes = [dim.size for group in (host, guest) for dim in group.space.dims]
        reductions = [member.body.reduction for member in guest.members if member.body.reduction is not None]
        if (
            host.space.r
            and host.space.numel != 1
            and all(isinstance(size, int) for size in sizes)
            and all(reduction.value in JOINABLE for reduction in reductions)
            and all(_is_total(member) for member in guest.members if member.is_across)
            and not (guest.has_scan or guest.updated or host.updated)
        ):
            yield host, guest


def _is_total(member: Member) -> bool:
    """Whether it reduces everything to one number, so that any loops may be the rows."""
    return member.body.reduction is not None and all(not access.index.dims for access in member.body.writes)


def _exchanged(host: Group) -> Iterator[Group]:
    """The host as the guest sees it: with x reduced, for each r or for nothing, or with everything reduced."""
    yield replace(host, space=Space(host.space.r, host.space.x))
    yield replace(host, space=Space((), host.space.x))
    yield replace(host, space=Space((), host.space.dims))


def _across(members: tuple[Member, ...], host: Group) -> Iterator[Member]:
    """The guest's members: what it computes before it reduces belongs to the loops, the rest comes after them."""
    late = set(host.across)
    read = {access.buffer for member in members for access in member.body.reads}
    for member in members:
        accesses = (*member.body.reads, *member.body.writes)
        is_late = (
            member.body.reduction is not None
            or any(access.buffer in late for access in accesses)
            # Nothing of it depends on the row, so once is enough.
            or (member.name not in read and all(access.index.dims.isdisjoint(host.space.x) for access in accesses))
        )
        if is_late:
            late.add(member.name)
        yield replace(member, is_across=is_late)


def _too_large(members: tuple[Member, ...], host: Group, context: Context) -> Refuse | None:
    """Whether the sums for each r, and the rows that are added to them at once, exceed the registers."""
    sums = sum(
        member.is_across
        and member.body.reduction is not None
        and any(not access.index.dims.isdisjoint(host.space.r) for access in member.body.writes)
        for member in members
    )
    row = next_power_of_two(known(host.space.reduction_numel))
    if _lies_side_by_side(host, context):
        row *= COALESCED_POINTS
    registers = registers_for_rows(context.device)
    if sums and row * (sums + VALUES_OF_A_ROW) > registers:
        return Refuse("profit.registers", {"row": host.space.reduction_numel, "sums": sums, "registers": registers})
    return None


def _lies_side_by_side(host: Group, context: Context) -> bool:
    """Whether less of what the host reads lies along its rows than across them."""
    reads = {(a.buffer, a.index) for m in host.members for a in m.body.reads if a.buffer not in host.produced}

    def bytes_along(dims: Sequence[Dim]) -> int:
        lying = (buffer for buffer, index in reads if any(index.stride(dim) in (1, -1) for dim in dims))
        return sum(context.graph.layouts[buffer].bytes for buffer in lying)

    return bytes_along(host.space.r) < max(bytes_along(host.space.x), 1)
