"""Fuse two groups in one loop nest, or inline a producer into its reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.decisions import Refuse
from compiler.ir.body import Body
from compiler.schedule.group import Group
from compiler.schedule.inline import compose, inline_into
from compiler.schedule.legality import across_comes_last, align, hosts, in_order, move, reads_match_writes
from compiler.schedule.names import fused_name
from compiler.schedule.rules.verdicts import Context, join
from compiler.schedule.unroll import is_short, written_out


class FuseLoops:
    """Run both in one loop nest: each point does what either did there.

    for i: a(i);  for j: b(j)    ->    for i: a(i); b(f(i))        with j = f(i) one to one
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        return bool(shared) and (self.kind == "vertical") == any(name in a.produced for name in shared)

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        outcome = self._joined(a, b, shared, context)
        if isinstance(outcome, Refuse) and outcome.reason == "index.different_positions":
            own = with_values_of_its_own(a, b, shared)
            if own is not None:
                again = [name for name in (*a.produced, *sorted(a.read_buffers)) if name in own.read_buffers]
                joined = self._joined(a, own, again, context, b)
                return joined if isinstance(joined, Group) else outcome
        return outcome

    def _joined(
        self, a: Group, b: Group, shared: list[str], context: Context, unit: Group | None = None
    ) -> Group | Refuse:
        """Both in one loop nest; `unit` is what `b` is made from, where it is changed."""
        refusal: Refuse | None = None
        inside = {context.graph.number_of(a), context.graph.number_of(unit or b)}
        for host, guest in hosts(a, b):
            values = align(host, guest, shared)
            if isinstance(values, Refuse):
                refusal = refusal or values
                continue
            moved = move(guest, values)
            members = in_order((*moved, *host.members) if guest is a else (*host.members, *moved))
            wrong = reads_match_writes(members) or across_comes_last(members, host.space)
            if wrong is None:
                return join(fused_name(members), members, host, context, inside)
            refusal = wrong
        assert refusal is not None
        return refusal


def with_values_of_its_own(a: Group, b: Group, shared: Sequence[str]) -> Group | None:
    """`b` with the arithmetic of what `a` computes for each element of its rows in the place of the loads, at whatever
    point of the row it needs that, as a rotation of normalised halves does. None where nothing is left that only `a`
    knows, or where that is not possible."""
    if not a.space.r or b.space.r:
        return None
    reader = b
    for member in a.members:
        varies = any(not access.index.dims.isdisjoint(a.space.r) for access in member.body.writes)
        if member.name not in shared or not varies:
            continue
        producer = compose(a, member.name)
        members = None if producer is None else inline_into(reader, producer, member.name, a.space.dims)
        if members is None:
            return None
        reader = replace(reader, members=members)
    return reader if reader is not b and not a.produced.isdisjoint(reader.read_buffers) else None


class InlineProducer:
    """Compute a pointwise producer again inside its only reader, at whatever point that reads.

    for i: y[i] = g(i);  for j: ... y[f(j)] ...    ->    for j: ... g(f(j)) ...

    A producer of several results (the two halves of a concatenation) goes the same way, one result after the other. A
    reduction of few elements is written out for it.
    """

    kind = "inline"

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        return (not a.space.r or is_short(a)) and any(name in a.produced for name in shared)

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        graph = context.graph
        inside = {graph.number_of(a), graph.number_of(b)}
        if graph.escaping(a.produced, inside):
            return Refuse("index.no_common_loops")
        # Random numbers are expensive to draw again at every point that reads them; a check runs once.
        if a.has_check or any(member.body.is_random for member in a.members):
            return Refuse("index.no_common_loops")
        reader, pointwise = b, written_out(a) if a.space.r else a
        for buffer in sorted(a.stored):
            producer = None if pointwise is None else compose(pointwise, buffer)
            members = None if producer is None else inline_into(reader, producer, buffer, a.space.x)
            if members is None:
                return Refuse("index.no_common_loops")
            reader = replace(reader, members=members)
        absorbed = [replace(member, body=Body(())) for member in a.members]
        return join(fused_name([*a.members, *b.members]), [*absorbed, *reader.members], b, context, inside)
