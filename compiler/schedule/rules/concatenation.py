"""Whether a concatenation is written part by part: see `compiler.schedule.concatenation`.

It is tried on a graph of its own: there the parts fuse with what they can, and if all kernels that are new take less
than those that they come from, the schedule goes on with that graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.decisions import Refuse
from compiler.devices import Device
from compiler.ir.index import Dim, Index, Mod
from compiler.ir.nodes import Layout
from compiler.ir.size import is_multiple
from compiler.schedule.concatenation import ConcatenationParts, in_equal_parts, in_parts
from compiler.schedule.cost.kernel import sequence_us
from compiler.schedule.cost.touches import touches_of, traffic_by
from compiler.schedule.group import Group, parts_of
from compiler.schedule.memory.order import as_written
from compiler.schedule.rules.verdicts import Context
from compiler.schedule.units import UnitGraph
from compiler.schedule.vectors import VECTOR_BYTES, moves_vectors

REFUSAL = "profit.parts"
#: Issue slots of an access that moves one element of two bytes or less, where a vector of sixteen bytes would move it
#: with its neighbours. On an H200 the gradient of 16384 x 50257 bfloat16 logits, in rows of 50264, was a step's 0.8 ms
#: slower without the seven columns beside it, as neighbours then go to the next row in the middle of a vector.
ALONE = 16
#: The least elements of a vector that are small.
SMALL = 8


@dataclass(frozen=True)
class Split:
    """A graph in which the parts of one kernel are units of their own, and their numbers; whether they are there for
    the kernels that make what they read."""

    graph: UnitGraph
    numbers: tuple[int, ...]
    is_for_makers: bool


def splits_in_parts(group: Group, context: Context) -> Iterator[Split]:
    """The units with the parts of `group` in its place, for each way to have parts; none where directives are about
    it."""
    before = context.graph
    if context.directives.are_about(group):
        return
    for split in (in_parts, in_equal_parts):
        parts = split(group, before, before.layouts)
        if parts is not None:
            yield _with(parts, group, before, is_for_makers=split is in_parts)


def _with(parts: ConcatenationParts, group: Group, before: UnitGraph, is_for_makers: bool) -> Split:
    nodes = [new for node in before.graph.nodes for new in parts.nodes.get(node.name, (node,))]
    layouts = before.layouts | {node.name: node.layout for made in parts.nodes.values() for node in made}
    graph = replace(before.graph, nodes=nodes, buffers=layouts)
    units = [*(unit for unit in before.units.values() if unit is not group), *parts.groups]
    after = UnitGraph(graph, as_written(units, graph))
    return Split(after, tuple(after.number_of(part) for part in parts.groups), is_for_makers)


def weigh_parts(before: UnitGraph, context: Context) -> Refuse | None:
    """A refusal where the kernels that are new in the context's graph are not expected to be faster than those of
    `before` that are gone; None where they are."""
    gone, new = _changed(before, context.graph), _changed(context.graph, before)
    fused_us, unfused_us = (
        sequence_us([context.cost(unit) for unit in units], context.device)
        + sum(_alone_us(unit, graph.layouts, context.device) for unit in units)
        for units, graph in ((new, context.graph), (gone, before))
    )
    if fused_us < unfused_us:
        return None
    return Refuse(REFUSAL, {"fused_us": fused_us, "unfused_us": unfused_us, "kernels": len(new)})


def _alone_us(group: Group, layouts: Mapping[str, Layout], device: Device) -> float:
    """What the pointwise kernels of a group take besides for small elements that lie along the lanes, but are moved one
    by one, as vectors of them do not begin where those of neighbours do. How a reduction lays its lanes is its own."""
    if device.kind == "cpu":
        return 0.0
    alone = 0
    for part in parts_of(group):
        traffic = traffic_by(part, touches_of(part, layouts))
        if part.space.r or traffic.lane is None:
            continue
        dims = (*(dim for dim in part.space.x if dim != traffic.lane), traffic.lane)
        for touch in traffic.touches:
            elements = VECTOR_BYTES // layouts[touch.access.buffer].dtype.itemsize
            if elements >= SMALL and traffic.lane in touch.access.fast_dims:
                alone += touch.times * (not _in_vectors(touch.access.index, dims, elements))
    return 2e6 * ALONE * alone / device.flops


def _in_vectors(index: Index, dims: Sequence[Dim], elements: int) -> bool:
    """Whether each `elements` neighbours along `dims` are a vector, those of one loop made of several, too: of
    `64*(x0 // 1024) + x0 % 64`, eight."""
    if moves_vectors(index, dims, elements):
        return True
    return is_multiple(index.offset, elements) and all(
        is_multiple(atom.divisor if step in (1, -1) and isinstance(atom, Mod) else step, elements)
        for atom, step in index.terms
    )


def _changed(graph: UnitGraph, other: UnitGraph) -> list[Group]:
    kept = {id(unit) for unit in other.units.values()}
    return [unit for unit in graph.units.values() if isinstance(unit, Group) and id(unit) not in kept]


def makers_of(group: Group, graph: UnitGraph) -> Iterator[int]:
    """The kernels that make what a group reads."""
    numbers = {graph.producer[buffer] for buffer in group.read_buffers if buffer in graph.producer}
    yield from sorted(number for number in numbers if isinstance(graph.units[number], Group))
