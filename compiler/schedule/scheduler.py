"""The scheduler: which loop nodes become one kernel, in which order kernels run.

Greedy, best first. Each round asks `can_fuse` about every pair of units that share a buffer and was not asked before;
then takes the fusions that it allowed, best score first, each unit at most once; the next round looks at the new groups
only. It ends when no pair is left that may and should fuse. Every answer leaves a decision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compiler.devices import Device
from compiler.ir.nodes import ExternNode, LoopGraph, LoopNode
from compiler.options import Options
from compiler.schedule.group import Group
from compiler.schedule.names import with_unique_names
from compiler.schedule.reasons import Refuse
from compiler.schedule.recompute import recompute_in_readers
from compiler.schedule.rules import Context, Fuse, Limits, can_fuse, shared_buffers
from compiler.schedule.units import Unit, UnitGraph


@dataclass(frozen=True)
class Decision:
    """One pair that was looked at. `a` and `b` are the two nodes at which the units touch; `lines` are the user's."""

    a: str
    b: str
    round: int
    is_vertical: bool
    verdict: Fuse | Refuse
    names: dict[str, Any]
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """What codegen gets: units in the order in which they run, and why they are what they are."""

    graph: LoopGraph
    units: tuple[Unit, ...]
    decisions: tuple[Decision, ...]
    dead: tuple[str, ...]


def schedule(graph: LoopGraph, device: Device, options: Options) -> Schedule:
    """Fuse and order the nodes of `graph` for `device`."""
    live, dead = without_dead_nodes(graph)
    units = UnitGraph(live)
    limits = Limits(most_nodes=int(options.knobs.get("most_nodes", Limits.most_nodes)))
    context = Context(units, device, limits, frozenset(options.knobs.get("disable", ())))
    decisions: list[Decision] = []
    fresh = set(units.units)
    turn = 0
    while fresh:
        while fresh:
            turn += 1
            fresh = _round(context, fresh, turn, decisions)
        fresh = _recompute(context, turn, decisions)
    ordered = _in_order(units)
    names = with_unique_names(unit for unit in ordered if isinstance(unit, Group))
    named = tuple(replace(u, name=names[u.members[0].name]) if isinstance(u, Group) else u for u in ordered)
    return Schedule(live, named, tuple(decisions), dead)


def without_dead_nodes(graph: LoopGraph) -> tuple[LoopGraph, tuple[str, ...]]:
    """The graph without the nodes whose results reach no output, and their names."""
    needed = set(graph.output_buffers)
    kept, dead = [], []
    for node in reversed(graph.nodes):
        writes = node.write_buffers if isinstance(node, ExternNode) else (node.name,)
        has_effect = isinstance(node, ExternNode) and not writes
        if has_effect or not needed.isdisjoint(writes):
            needed |= node.read_buffers
            kept.append(node)
        else:
            dead.append(node.name)
    return replace(graph, nodes=kept[::-1]), tuple(dead[::-1])


def _round(context: Context, fresh: set[int], turn: int, decisions: list[Decision]) -> set[int]:
    """One round over the pairs that have a unit of `fresh`; gives the units that it made."""
    candidates: list[tuple[Fuse, int, int]] = []
    for a, b in _pairs(context.graph, fresh):
        verdict = can_fuse(a, b, context)
        if isinstance(verdict, Fuse):
            candidates.append((verdict, a, b))
        else:
            decisions.append(_decision(context.graph, a, b, turn, verdict))
    candidates.sort(key=lambda item: item[0].score.rank, reverse=True)
    made: set[int] = set()
    for _, a, b in candidates:
        units = context.graph.units
        # An earlier fusion of this round may have put a third unit between the two: they are asked again.
        if a in units and b in units:
            again = can_fuse(a, b, context)
            decisions.append(_decision(context.graph, a, b, turn, again))
            if isinstance(again, Fuse):
                made.add(context.graph.merge(a, b, again.group))
    return made & set(context.graph.units)


def _recompute(context: Context, turn: int, decisions: list[Decision]) -> set[int]:
    """Drop the buffers that are cheaper to compute again; gives the units that changed, which may fuse now."""
    graph = context.graph
    if "recompute" in context.disabled:
        return set()
    changed: set[int] = set()
    for number, unit in list(graph.units.items()):
        for buffer in sorted(unit.stored) if isinstance(unit, Group) else ():
            found = recompute_in_readers(number, buffer, context)
            if found is None:
                continue
            smaller, readers = found
            for reader, (_, verdict) in readers.items():
                decisions.append(_decision(graph, number, reader, turn, verdict, shared_first=buffer))
            graph.replace(number, smaller)
            for reader, (group, _) in readers.items():
                graph.replace(reader, group)
            changed |= {number, *readers}
    return changed


def _pairs(graph: UnitGraph, fresh: set[int]) -> list[tuple[int, int]]:
    """Distinct pairs that share a buffer, each with the one that must run first in front."""
    found: dict[tuple[int, int], None] = {}
    for number in sorted(fresh):
        for other, _ in graph.neighbours(number):
            a, b = (other, number) if graph.must_precede(other, number) else (number, other)
            if not graph.must_precede(a, b):
                a, b = min(a, b), max(a, b)
            both_library = isinstance(graph.units[a], ExternNode) and isinstance(graph.units[b], ExternNode)
            if not both_library:
                found[a, b] = None
    return list(found)


def _decision(
    graph: UnitGraph, a: int, b: int, turn: int, verdict: Fuse | Refuse, shared_first: str | None = None
) -> Decision:
    """`shared_first` names the buffer that the verdict is about, where that is not the first one that both touch."""
    one, two = graph.units[a], graph.units[b]
    shared, is_vertical = shared_buffers(graph, a, b)
    shared = [shared_first, *shared] if shared_first is not None else shared
    name_a = _node_at(one, shared, is_maker=is_vertical)
    name_b = _node_at(two, shared, is_maker=False)
    names: dict[str, Any] = {"a": name_a, "b": name_b, "shared": shared[0] if shared else "nothing"}
    if isinstance(one, Group) and isinstance(two, Group):
        names |= {
            "space_a": str(one.space),
            "space_b": str(two.space),
            "iterations_a": one.space.numel * one.space.reduction_numel,
            "iterations_b": two.space.numel * two.space.reduction_numel,
            "group_a": [m.name for m in one.members],
            "group_b": [m.name for m in two.members],
        }
    return Decision(name_a, name_b, turn, is_vertical, verdict, names | verdict.numbers, _lines_of(one, two))


def _lines_of(*units: Unit) -> tuple[int, ...]:
    nodes: list[LoopNode | ExternNode] = []
    for unit in units:
        nodes += [m.node for m in unit.members] if isinstance(unit, Group) else [unit]
    return tuple(sorted({line for node in nodes for line in node.lines}))


def _node_at(unit: Unit, shared: list[str], is_maker: bool) -> str:
    """The member through which the unit touches the first shared buffer."""
    if isinstance(unit, ExternNode) or not shared:
        return unit.name if isinstance(unit, ExternNode) else unit.members[-1].name
    if is_maker:
        return next((m.name for m in unit.members if m.name == shared[0]), unit.members[-1].name)
    return next(
        (m.name for m in unit.members if any(a.buffer == shared[0] for a in m.body.reads)), unit.members[-1].name
    )


def _in_order(graph: UnitGraph) -> list[Unit]:
    """Units such that each follows all that it needs; among those that are ready, the one written first."""
    alive = 0
    for number in graph.units:
        alive |= graph.bits[number]
    waiting = sorted(graph.units, key=graph.first_position)
    done: list[Unit] = []
    while waiting:
        number = next(n for n in waiting if not graph.ancestors[n] & alive)
        waiting.remove(number)
        alive &= ~graph.bits[number]
        done.append(graph.units[number])
    return done
