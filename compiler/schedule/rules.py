"""The kinds of fusion, one rule each.

A rule looks at two units and answers with the group that they would become, or with a `Refuse`; it changes nothing.
`can_fuse` asks the rules in turn and weighs the first group that is legal. A new kind of fusion is a new class here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from compiler.devices import Device
from compiler.ir.body import Body
from compiler.ir.nodes import ExternNode, Layout
from compiler.schedule.choices import Choice, weighed
from compiler.schedule.cost import Cost, group_cost
from compiler.schedule.group import Group, Member
from compiler.schedule.inline import compose, inline_into
from compiler.schedule.legality import align, hosts, in_order, move, reads_match_writes, scatter_between
from compiler.schedule.names import fused_name
from compiler.schedule.reasons import Refuse
from compiler.schedule.units import Unit, UnitGraph, produced_by, read_by


@dataclass(frozen=True)
class Limits:
    """What keeps a group from growing past what one kernel can hold."""

    most_nodes: int = 64
    most_buffers: int = 24


@dataclass(frozen=True)
class Context:
    """All that a verdict may depend on besides the two units."""

    graph: UnitGraph
    device: Device
    limits: Limits = Limits()
    disabled: frozenset[str] = frozenset()
    costs: dict[Group, Cost] = field(default_factory=dict)
    #: Buffers that are not worth computing again in their readers, with the maker and the readers at that time.
    kept_stored: dict[str, list[Unit]] = field(default_factory=dict)

    def cost(self, group: Group) -> Cost:
        """The expected cost of `group` as one kernel; each one is worked out once."""
        found = self.costs.get(group)
        if found is None:
            found = self.costs[group] = group_cost(group, self.graph.layouts, self.device)
        return found


@dataclass(frozen=True)
class Score:
    """What a fusion is expected to bring. Times are predictions in microseconds."""

    category: str
    bytes_saved: int
    distance: int
    fused_us: float
    unfused_us: float

    @property
    def benefit_us(self) -> float:
        return self.unfused_us - self.fused_us

    @property
    def rank(self) -> tuple[float, int, int]:
        """Larger is fused first."""
        return self.benefit_us, self.bytes_saved, -self.distance


@dataclass(frozen=True)
class Fuse:
    """A fusion that is legal and pays: what the two units become."""

    reason: str
    group: Group
    score: Score
    numbers: dict[str, Any]


class Rule(Protocol):
    id: str

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool: ...

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse: ...


def join(name: str, members: Sequence[Member], host: Group, context: Context, inside: set[int]) -> Group:
    produced = [member.name for member in members]
    return Group(name, host.space, tuple(members), context.graph.escaping(produced, inside))


class FuseLoops:
    """Run both in one loop nest: each point does what either did there.

    for i: a(i);  for j: b(j)    ->    for i: a(i); b(f(i))        with j = f(i) one to one
    """

    def __init__(self, kind: str) -> None:
        self.id = f"fused.{kind}"
        self.kind = kind

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        return bool(shared) and (self.kind == "vertical") == any(name in a.produced for name in shared)

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        refusal: Refuse | None = None
        inside = {context.graph.number_of(a), context.graph.number_of(b)}
        for host, guest in hosts(a, b):
            values = align(host, guest, shared)
            if isinstance(values, Refuse):
                refusal = refusal or values
                continue
            moved = move(guest, values)
            members = in_order((*moved, *host.members) if guest is a else (*host.members, *moved))
            wrong = reads_match_writes(members)
            if wrong is None:
                return join(fused_name(members), members, host, context, inside)
            refusal = wrong
        assert refusal is not None
        return refusal


class InlineProducer:
    """Compute a pointwise producer again inside its only reader, at whatever point that reads.

    for i: y[i] = g(i);  for j: ... y[f(j)] ...    ->    for j: ... g(f(j)) ...
    """

    id = "fused.inline"

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        return not a.space.r and any(name in a.produced for name in shared)

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        graph = context.graph
        inside = {graph.number_of(a), graph.number_of(b)}
        if graph.escaping(a.produced, inside) or len(a.stored) != 1:
            return Refuse("index.no_common_loops")
        # Random numbers are dear to draw again at every point that reads them.
        if any(member.body.is_random for member in a.members):
            return Refuse("index.no_common_loops")
        (buffer,) = a.stored
        producer = compose(a, buffer)
        members = None if producer is None else inline_into(b, producer, buffer, a.space.x)
        if members is None:
            return Refuse("index.no_common_loops")
        absorbed = [replace(member, body=Body(())) for member in a.members]
        return join(fused_name([*a.members, *b.members]), [*absorbed, *members], b, context, inside)


RULES: tuple[Rule, ...] = (FuseLoops("vertical"), InlineProducer(), FuseLoops("horizontal"))


def shared_buffers(one: Unit, two: Unit, layouts: dict[str, Layout]) -> tuple[list[str], bool]:
    """Buffers that both touch, those that `one` makes for `two` first; and whether there are any of the latter."""
    made, read_a, read_b = produced_by(one), read_by(one), read_by(two)
    vertical = sorted(made & read_b)
    size = {name: layouts[name].bytes for name in read_a & read_b}
    return vertical + sorted(size, key=lambda name: (-size[name], name)), bool(vertical)


def third_between(a: int, b: int, graph: UnitGraph) -> Refuse | None:
    """Whether a third unit must run after the one and before the other."""
    # An earlier fusion may have ordered two units that were free of each other, either way around.
    between = graph.between(a, b) if graph.must_precede(a, b) else graph.between(b, a)
    return None if between is None else Refuse("dependency.intermediate", {"between": graph.units[between].name})


def can_fuse(a: int, b: int, context: Context) -> Fuse | Refuse:
    """May units `a` and `b` (a before b, where one depends on the other) become one kernel, and does it pay?"""
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    shared, is_vertical = shared_buffers(one, two, graph.layouts)
    if isinstance(one, ExternNode) or isinstance(two, ExternNode):
        return Refuse("kind.extern", {"extern": one.name if isinstance(one, ExternNode) else two.name})
    intermediate = third_between(a, b, graph)
    if intermediate is not None:
        return intermediate
    if len(one.members) + len(two.members) > context.limits.most_nodes:
        nodes = len(one.members) + len(two.members)
        return Refuse("policy.group_size", {"nodes": nodes, "limit": context.limits.most_nodes})
    scatter = scatter_between(one, two)
    if scatter is not None:
        return scatter
    refusal: Refuse | None = None
    for rule in RULES:
        if not rule.applies(one, two, shared) or (rule.id != "fused.horizontal") != is_vertical:
            continue
        kind = rule.id.removeprefix("fused.")
        outcome = (
            Refuse("policy.disabled", {"knob": kind})
            if kind in context.disabled
            else rule.fuse(one, two, shared, context)
        )
        if isinstance(outcome, Group):
            return _weigh(rule.id, a, b, outcome, shared, context)
        refusal = refusal or outcome
    assert refusal is not None
    return refusal


def _weigh(reason: str, a: int, b: int, group: Group, shared: list[str], context: Context) -> Fuse | Refuse:
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    assert isinstance(one, Group) and isinstance(two, Group)
    buffers = len(group.read_buffers) + len(group.stored)
    if buffers > context.limits.most_buffers:
        return Refuse("profit.too_many_buffers", {"buffers": buffers, "limit": context.limits.most_buffers})
    apart = [context.cost(unit) for unit in (one, two)]
    fused = context.cost(group)
    score = Score(
        category=reason.removeprefix("fused."),
        bytes_saved=sum(cost.bytes for cost in apart) - fused.bytes,
        distance=abs(_position(one, graph) - _position(two, graph)),
        fused_us=fused.microseconds,
        unfused_us=sum(cost.microseconds for cost in apart),
    )
    numbers = {
        "bytes_apart": sum(cost.bytes for cost in apart),
        "bytes_fused": fused.bytes,
        "operations_apart": sum(cost.operations for cost in apart),
        "operations_fused": fused.operations,
        "fused_us": fused.microseconds,
        "unfused_us": score.unfused_us,
        "space": str(group.space),
    }
    weighed(Choice(score.category, (one, two), (group,), score.unfused_us, score.fused_us))
    if score.benefit_us <= 0:
        return Refuse("profit.slower", numbers)
    return Fuse(reason, group, score, numbers)


def _position(group: Group, graph: UnitGraph) -> int:
    return graph.position[group.members[0].name]
