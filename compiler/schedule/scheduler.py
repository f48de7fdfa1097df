"""The scheduler: which loop nodes become one kernel, in which order kernels run.

Greedy, best first. Each round asks `can_fuse` about every pair of units that share a buffer and was not asked before;
then takes the fusions that it allowed, best score first, each unit at most once; the next round looks at the new groups
only. It ends when no pair is left that may and should fuse. Every answer leaves a decision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.devices import Device
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.options import Options
from compiler.schedule.decisions import Decision, decision_on
from compiler.schedule.forced import fuse_forced_first, fuse_forced_last
from compiler.schedule.group import Group
from compiler.schedule.names import with_unique_names
from compiler.schedule.order import in_order
from compiler.schedule.reasons import Refuse
from compiler.schedule.recompute import recompute_in_readers
from compiler.schedule.rules import Context, Fuse, Limits, can_fuse, third_between
from compiler.schedule.rules.batch import batch_launches
from compiler.schedule.units import Unit, UnitGraph
from compiler.schedule.wishes import NO_WISHES, Wishes


@dataclass(frozen=True)
class Schedule:
    """What codegen gets: units in the order in which they run, and why they are what they are."""

    graph: LoopGraph
    units: tuple[Unit, ...]
    decisions: tuple[Decision, ...]
    dead: tuple[str, ...]


def schedule(graph: LoopGraph, device: Device, options: Options, wishes: Wishes = NO_WISHES) -> Schedule:
    """Fuse and order the nodes of `graph` for `device`, with what the reader wishes of pairs of them."""
    live, dead = without_dead_nodes(graph)
    units = UnitGraph(live)
    context = context_of(units, device, options, wishes)
    decisions: list[Decision] = []

    def answer(a: int, b: int, verdict: Fuse | Refuse) -> None:
        decisions.append(decision_on(units, a, b, turn + 1, verdict))

    turn = 0
    fuse_forced_first(context, answer)
    fresh = set(units.units)
    turn = 1 if decisions else 0
    while fresh:
        while fresh:
            turn += 1
            fresh = _round(context, fresh, turn, decisions)
        fresh = _recompute(context, turn, decisions)
    fuse_forced_last(context, answer)
    ordered = in_order(tuple(units.units.values()), live)
    if batch_launches(context, ordered, answer):
        ordered = in_order(tuple(units.units.values()), live)
    names = with_unique_names(unit for unit in ordered if isinstance(unit, Group))
    named = tuple(replace(u, name=names[u.members[0].name]) if isinstance(u, Group) else u for u in ordered)
    return Schedule(live, named, tuple(decisions), dead)


def context_of(units: UnitGraph, device: Device, options: Options, wishes: Wishes = NO_WISHES) -> Context:
    """What verdicts depend on besides the two units."""
    limits = Limits(most_nodes=options.most_nodes or Limits.most_nodes)
    return Context(units, device, limits, options.disabled_rules, wishes)


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
            decisions.append(decision_on(context.graph, a, b, turn, verdict))
    candidates.sort(key=lambda item: item[0].score.rank, reverse=True)
    made: set[int] = set()
    for verdict, a, b in candidates:
        units = context.graph.units
        if a in units and b in units:
            # All that an earlier fusion of this round may have changed: a third unit now runs between the two.
            now = third_between(a, b, context.graph) or verdict
            decisions.append(decision_on(context.graph, a, b, turn, now))
            if isinstance(now, Fuse):
                made.add(context.graph.merge(a, b, now.group))
    return made & set(context.graph.units)


def _recompute(context: Context, turn: int, decisions: list[Decision]) -> set[int]:
    """Drop the buffers that are cheaper to compute again; gives the units that changed, which may fuse now."""
    graph = context.graph
    if "recompute" in context.disabled:
        return set()
    changed: set[int] = set()
    for number, unit in list(graph.units.items()):
        for buffer in sorted(unit.stored) if isinstance(unit, Group) else ():
            involved = [graph.units[n] for n in (number, *sorted(graph.readers[buffer]))]
            if context.kept_stored.get(buffer) == involved:
                continue
            found = recompute_in_readers(number, buffer, context)
            if found is None or isinstance(found, Refuse):
                context.kept_stored[buffer] = involved
                if found is not None:
                    others = sorted(graph.readers[buffer] - {number})
                    decisions += [decision_on(graph, number, reader, turn, found, about=buffer) for reader in others]
                continue
            smaller, readers = found
            for reader, (_, verdict) in readers.items():
                decisions.append(decision_on(graph, number, reader, turn, verdict, about=buffer))
            graph.replace(number, smaller)
            for reader, (group, _) in readers.items():
                graph.replace(reader, group)
            changed |= {number, *readers}
    return changed


def _pairs(graph: UnitGraph, fresh: set[int]) -> list[tuple[int, int]]:
    """Distinct pairs that share a buffer, each with the one that must run first in front."""
    found: dict[tuple[int, int], None] = {}
    for number, other in graph.neighbours(sorted(fresh)):
        if (number, other) in found or (other, number) in found:
            continue
        a, b = (other, number) if graph.must_precede(other, number) else (number, other)
        if not graph.must_precede(a, b):
            a, b = min(a, b), max(a, b)
        both_library = isinstance(graph.units[a], ExternNode) and isinstance(graph.units[b], ExternNode)
        if not both_library:
            found[a, b] = None
    return list(found)
