"""Whether a concatenation is written part by part: see `compiler.schedule.parts`.

It is tried on a graph of its own: there the parts fuse with what they can, and if all kernels that are new take less
than those that they come from, the schedule goes on with that graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compiler.schedule.cost.kernel import sequence_us
from compiler.schedule.group import Group
from compiler.schedule.memory.order import as_written
from compiler.schedule.parts import in_parts
from compiler.schedule.records.reasons import Refuse
from compiler.schedule.rules.verdicts import Context
from compiler.schedule.units import UnitGraph

REFUSAL = "profit.parts"


@dataclass(frozen=True)
class Split:
    """A graph in which the parts of one kernel are units of their own, and their numbers."""

    graph: UnitGraph
    numbers: tuple[int, ...]


def split_in_parts(group: Group, context: Context) -> Split | None:
    """The units with the parts of `group` in its place; None where it has none, or where wishes are about it."""
    before = context.graph
    if context.wishes.are_about(group):
        return None
    parts = in_parts(group, before, before.layouts)
    if parts is None:
        return None
    nodes = [new for node in before.graph.nodes for new in parts.nodes.get(node.name, (node,))]
    layouts = before.layouts | {node.name: node.layout for made in parts.nodes.values() for node in made}
    graph = replace(before.graph, nodes=nodes, buffers=layouts)
    units = [*(unit for unit in before.units.values() if unit is not group), *parts.groups]
    after = UnitGraph(graph, as_written(units, graph))
    return Split(after, tuple(after.number_of(part) for part in parts.groups))


def weigh_parts(before: UnitGraph, context: Context) -> Refuse | None:
    """A refusal where the kernels that are new in the context's graph are not expected to be faster than those of
    `before` that are gone; None where they are."""
    gone, new = _changed(before, context.graph), _changed(context.graph, before)
    costs = [[context.cost(unit) for unit in units] for units in (new, gone)]
    fused_us, unfused_us = (sequence_us(of_units, context.device) for of_units in costs)
    if fused_us < unfused_us:
        return None
    return Refuse(REFUSAL, {"fused_us": fused_us, "unfused_us": unfused_us, "kernels": len(new)})


def _changed(graph: UnitGraph, other: UnitGraph) -> list[Group]:
    kept = {id(unit) for unit in other.units.values()}
    return [unit for unit in graph.units.values() if isinstance(unit, Group) and id(unit) not in kept]


def makers_of(group: Group, graph: UnitGraph) -> Iterator[int]:
    """The kernels that make what a group reads."""
    numbers = {graph.producer[buffer] for buffer in group.read_buffers if buffer in graph.producer}
    yield from sorted(number for number in numbers if isinstance(graph.units[number], Group))
