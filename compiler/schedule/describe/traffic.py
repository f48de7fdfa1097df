"""What a schedule moves beside what its nodes would move without fusion, tensor by tensor, as the report shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from compiler import report
from compiler.ir.body import Body
from compiler.ir.nodes import ExternNode, Layout, LoopGraph, LoopNode, Node
from compiler.ir.overlap import Part, bytes_together
from compiler.ir.size import hint
from compiler.lowering.library import unseen_in
from compiler.lowering.registry import operator_name
from compiler.schedule.cost.moved import Moved, moved_by, part_of_memory
from compiler.schedule.cost.touches import touched_bytes, touched_part
from compiler.schedule.group import Group
from compiler.schedule.scheduler import Schedule, without_fusion
from compiler.schedule.units import Unit


def describe_traffic(schedule: Schedule, eager: report.ExecutionTraffic | None) -> report.Traffic:
    """The figures of `report.Traffic`; what eager moves was counted when the graph was captured."""
    unfused = without_fusion(schedule)
    pairs = zip(unfused.graph.nodes, unfused.units, strict=True)
    moved = {node.name: moved_by(unit, schedule.graph.buffers) for node, unit in pairs}
    found = _Edges(schedule, moved)
    edges = found.all()
    floor = _floor(schedule.graph, moved)
    return report.Traffic(
        eager=eager,
        unfused=_execution(unfused),
        fused=_execution(schedule),
        floor_bytes=sum(one.read_bytes + one.written_bytes for one in floor),
        floor=floor,
        edges=edges,
        saved_written_bytes=sum(
            size for one in moved.values() for buffer, size in one.written.items() if buffer not in found.stored
        ),
        saved_read_bytes=sum(edge.saved_read_bytes for edge in edges),
        more_read_bytes=sum(sum(of_unit.values()) for of_unit in found.unread),
    )


def _execution(schedule: Schedule) -> report.ExecutionTraffic:
    nodes = {node.name: node for node in schedule.graph.nodes}
    return execution_of([_launch(unit, schedule.graph.buffers, nodes) for unit in schedule.units])


def execution_of(launches: list[report.LaunchTraffic]) -> report.ExecutionTraffic:
    """The sums of launches."""
    return report.ExecutionTraffic(
        bytes=sum(launch.bytes for launch in launches),
        library_bytes=sum(launch.bytes for launch in launches if launch.unseen),
        launches=launches,
    )


def _launch(unit: Unit, layouts: Mapping[str, Layout], nodes: Mapping[str, Node]) -> report.LaunchTraffic:
    moved = moved_by(unit, layouts)
    computed = [nodes[name] for name in unit.computed if name in nodes] if isinstance(unit, Group) else unit.nodes
    return report.LaunchTraffic(
        name=unit.name if isinstance(unit, Group) else operator_name(unit.target),
        node=None,
        bytes=moved.bytes,
        tensors=tensors_of(moved),
        lines=sorted({line for node in computed for line in node.lines}),
        unseen="" if isinstance(unit, Group) else unseen_in(operator_name(unit.target), unit.is_fallback),
    )


def tensors_of(moved: Moved) -> list[report.TensorTraffic]:
    """Tensors that are read first, then those that are only written."""
    return [
        report.TensorTraffic(tensor=name, read_bytes=moved.read.get(name, 0), written_bytes=moved.written.get(name, 0))
        for name in dict.fromkeys((*moved.read, *moved.written))
    ]


class _Edges:
    """Every tensor with each node that reads it, in the order of the readers.

    A kernel reads a tensor once for all its nodes. `unread` is what it reads and no edge has accounted for so far: the
    first reader takes its share of that, and a later one finds less, or nothing, where it reads the same elements."""

    def __init__(self, schedule: Schedule, moved: Mapping[str, Moved]) -> None:
        self.nodes, self.moved, self.units = schedule.graph.nodes, moved, schedule.units
        self.maker = {buffer: node.name for node in self.nodes for buffer in _made_by(node)}
        self.number_of = {name: n for n, unit in enumerate(self.units) for name in (*unit.produced, unit.name)}
        groups = [(number, unit) for number, unit in enumerate(self.units) if isinstance(unit, Group)]
        left_out = {name for _, group in groups for name in group.produced.difference(group.computed)}
        # Such a node is counted to the first kernel that computes it.
        self.number_of |= {name: n for n, group in reversed(groups) for name in left_out.intersection(group.computed)}
        self.stored = frozenset[str]().union(*(unit.stored for unit in self.units))
        self.unread = [dict(moved_by(unit, schedule.graph.buffers).read) for unit in self.units]

    def all(self) -> list[report.EdgeTraffic]:
        return [self._edge(node, buffer) for node in self.nodes for buffer in _reads_in_order(node)]

    def _edge(self, node: Node, buffer: str) -> report.EdgeTraffic:
        # What a scatter updates has the scatter's own name in its figures.
        name = buffer if buffer in self.moved[node.name].read else node.name
        size = self.moved[node.name].read.get(name, 0)
        reader = self.number_of[next(iter(_made_by(node)), node.name)]
        fate, paid = self._fate(buffer, node, reader), 0
        if fate == "memory":
            paid = min(size, self.unread[reader].get(name, 0))
            self.unread[reader][name] = self.unread[reader].get(name, 0) - paid
            fate = "memory" if paid == size else "shared_read"
        return report.EdgeTraffic(
            tensor=buffer,
            producer=self.maker.get(buffer),
            consumer=node.name,
            written_bytes=self.moved[self.maker[buffer]].written.get(buffer, 0) if buffer in self.maker else 0,
            read_bytes=size,
            saved_read_bytes=size - paid,
            fate=fate,
        )

    def _fate(self, buffer: str, node: Node, reader: int) -> report.EdgeFate:
        unit = self.units[reader]
        if self.number_of.get(buffer) != reader:
            return "memory" if buffer in unit.needed else "recomputed"
        if isinstance(unit, Group) and _computes_again(unit, node.name, buffer):
            return "recomputed"
        return "read_saved" if buffer in self.stored else "register"


def _computes_again(group: Group, reader: str, buffer: str) -> bool:
    """Whether the reader's body has the arithmetic that gives the value, in place of the value."""
    body = next((member.body for member in group.members if member.name == reader), Body(()))
    return bool(body.instructions) and all(access.buffer != buffer for access in body.reads)


def _made_by(node: Node) -> tuple[str, ...]:
    return node.write_buffers if isinstance(node, ExternNode) else (node.name,)


def _reads_in_order(node: Node) -> list[str]:
    if isinstance(node, ExternNode):
        return list(dict.fromkeys(argument.buffer for argument in node.tensor_arguments))
    names = [access.buffer for access in node.body.reads]
    return list(dict.fromkeys(names if node.updates is None else [*names, node.updates]))


def _floor(graph: LoopGraph, moved: Mapping[str, Moved]) -> list[report.TensorTraffic]:
    """What any compiler must move: what is used of each input read once, each output written once. Of an input that is
    changed where it lies, that is what the changes write."""
    given = [name for name in graph.inputs if name is not None]
    changed = _changed_inputs(graph)
    used = _used_of_inputs(graph, frozenset(given), changed, moved)
    written = {o.buffer: o.layout for o in graph.outputs if o.buffer is not None and o.layout is not None}
    reads = [
        report.TensorTraffic(tensor=name, read_bytes=used[name]) for name in dict.fromkeys(given) if used.get(name)
    ]
    writes = [
        report.TensorTraffic(tensor=name, written_bytes=min(_changes(name, changed, moved), layout.bytes))
        if name in changed
        else report.TensorTraffic(tensor=name, written_bytes=layout.bytes)
        for name, layout in written.items()
        if name not in graph.inputs and layout.bytes
    ]
    return reads + writes


def _changed_inputs(graph: LoopGraph) -> dict[str, str]:
    """The scatters that change an input where it lies, each with that."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node, LoopNode) and node.updates is not None:
            start = found.get(node.updates, node.updates)
            if start in graph.inputs:
                found[node.name] = start
    return found


def _changes(output: str, changed: Mapping[str, str], moved: Mapping[str, Moved]) -> int:
    """Bytes that the scatters write that change the input of which an output is the last state."""
    return sum(moved[name].written.get(name, 0) for name, start in changed.items() if start == changed[output])


def _used_of_inputs(
    graph: LoopGraph, inputs: Collection[str], changed: Mapping[str, str], moved: Mapping[str, Moved]
) -> dict[str, int]:
    """Bytes of each input that some node reads. Reads of one stretch of memory count once, of several stretches each,
    as far as they do not overlap: two halves are the whole, a few rows of a large table stay a few rows."""
    stretches: dict[str, dict[object, Part]] = {}
    for node in graph.nodes:
        for name, stretch, part in _stretches(node, graph.buffers, moved):
            buffer = changed.get(name, name)
            if buffer in inputs:
                of_buffer = stretches.setdefault(buffer, {})
                of_buffer[stretch] = max(part, of_buffer.get(stretch, part), key=lambda known: known.size)
    return {name: min(bytes_together(parts.values()), graph.buffers[name].bytes) for name, parts in stretches.items()}


def _stretches(
    node: Node, layouts: Mapping[str, Layout], moved: Mapping[str, Moved]
) -> Iterator[tuple[str, object, Part]]:
    """What a node reads: the buffer, what tells the stretch from others, and the part of memory that it is."""
    if isinstance(node, ExternNode):
        for argument in node.tensor_arguments:
            part = part_of_memory(argument.layout)
            yield argument.buffer, _of_any_node(part), part
        return
    count = hint(node.numel) * hint(node.reduction_numel)
    for access in node.body.reads:
        layout = layouts[access.buffer]
        part = touched_part(access, touched_bytes(access, count, layout), layout)
        yield access.buffer, (node.name, access.index) if access.index.indirections else _of_any_node(part), part
    if isinstance(node, LoopNode) and node.updates is not None:
        begin, end, *_ = part_of_memory(layouts[node.updates])
        yield node.updates, node.name, Part(begin, end, moved[node.name].read.get(node.name, 0))


def _of_any_node(part: Part) -> object:
    """What tells parts apart that several nodes may read: where they lie."""
    return part.first, part.after
