"""The scheduler: which loop nodes become one kernel, in which order kernels run.

Dead nodes go; `search.py` fuses what pays, best first; the units are put into the order that needs least memory; and
small kernels that are left share launches. Every answer of the rules leaves a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.devices import Device
from compiler.ir.nodes import ExternNode, LoopGraph, LoopNode
from compiler.options import Options
from compiler.schedule.attribution import counted_to_their_parts
from compiler.schedule.directives import NO_DIRECTIVES, Directives
from compiler.schedule.forced import fuse_forced_first, fuse_forced_last
from compiler.schedule.group import Group
from compiler.schedule.memory.order import in_order
from compiler.schedule.names import with_unique_names
from compiler.schedule.products.loops import Product
from compiler.schedule.records.alike import refuse_what_is_alike
from compiler.schedule.records.decisions import Decision
from compiler.schedule.reduction_strategies import verdicts_on_strategies
from compiler.schedule.rules import Context, Limits
from compiler.schedule.rules.batch import batch_launches
from compiler.schedule.rules.verdicts import Measure
from compiler.schedule.search import Search
from compiler.schedule.units import Unit, UnitGraph, single


@dataclass(frozen=True)
class Schedule:
    """What codegen gets: units in the order in which they run, and why they are what they are."""

    graph: LoopGraph
    units: tuple[Unit, ...]
    decisions: tuple[Decision, ...]
    dead: tuple[str, ...]


def schedule(
    graph: LoopGraph,
    device: Device,
    options: Options,
    directives: Directives = NO_DIRECTIVES,
    measure: Measure | None = None,
) -> Schedule:
    """Fuse and order the nodes of `graph` for `device`, with the user's directives about pairs of them, and products by
    what `measure` says that they take."""
    live, dead = without_dead_nodes(graph)
    units = UnitGraph(live)
    search = Search(context_of(units, device, options, directives, measure))
    fuse_forced_first(search.context, search.record)
    search.run()
    fuse_forced_last(search.context, search.record)
    _record_strategies(search)
    # What is written part by part is several nodes now.
    units, live = search.graph, search.graph.graph
    ordered = in_order(tuple(units.units.values()), live)
    units.order_anew()
    if batch_launches(search.context, ordered, search.record):
        ordered = in_order(tuple(units.units.values()), live)
    refuse_what_is_alike(search.context, ordered, search.decisions, search.record)
    ordered = counted_to_their_parts(ordered)
    names = with_unique_names(unit for unit in ordered if isinstance(unit, Group))
    named = tuple(_final(unit, names) for unit in ordered)
    return Schedule(live, named, tuple(search.decisions), dead)


def without_fusion(schedule: Schedule) -> Schedule:
    """The same nodes, a kernel each, in the order in which they were written."""
    nodes = schedule.graph.nodes
    units = tuple(single(node) if isinstance(node, LoopNode) else node for node in nodes)
    return Schedule(schedule.graph, units, (), schedule.dead)


def _final(unit: Unit, names: Mapping[str, str]) -> Unit:
    """The unit by the name of its kernel; one that the library computes as the call that does it."""
    if isinstance(unit, Product) and unit.library is not None:
        return unit.library
    return replace(unit, name=names[unit.members[0].name]) if isinstance(unit, Group) else unit


def context_of(
    units: UnitGraph,
    device: Device,
    options: Options,
    directives: Directives = NO_DIRECTIVES,
    measure: Measure | None = None,
) -> Context:
    """What verdicts depend on besides the two units."""
    limits = Limits(options.most_nodes or Limits.most_nodes, most_nodes_of_parts=options.most_nodes)
    return Context(units, device, limits, options.disabled_rules, directives, measure=measure)


def without_dead_nodes(graph: LoopGraph) -> tuple[LoopGraph, tuple[str, ...]]:
    """The graph without the nodes whose results reach no output, and their names."""
    needed = set(graph.output_buffers)
    kept, dead = [], []
    for node in reversed(graph.nodes):
        writes = node.write_buffers if isinstance(node, ExternNode) else (node.name,)
        has_effect = not writes or bool(node.sizes) if isinstance(node, ExternNode) else node.check is not None
        if has_effect or not needed.isdisjoint(writes):
            needed |= node.read_buffers | node.follows
            kept.append(node)
        else:
            dead.append(node.name)
    return replace(graph, nodes=kept[::-1]), tuple(dead[::-1])


def _record_strategies(search: Search) -> None:
    """Leave a decision on every reduction strategy that was open to a group."""
    for number, unit in search.graph.units.items():
        if isinstance(unit, Group) and unit.space.r:
            for verdict in verdicts_on_strategies(unit, search.context):
                search.record(number, number, verdict)
