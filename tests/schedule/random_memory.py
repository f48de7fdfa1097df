"""Random small graphs of loops and library calls, and what orders and plans of theirs take of memory, worked out step
by step and piece by piece, not by intervals as the compiler does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from compiler.ir.index import Index
from compiler.ir.nodes import ExternNode, GraphOutput, Layout, LoopGraph, LoopNode, TensorArgument
from compiler.ir.ops import ops
from compiler.ir.size import known
from compiler.lowering.builder import Builder
from compiler.lowering.values import Position, TensorValue, of_buffer
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import without_dead_nodes
from compiler.schedule.units import Unit, single

SIZES = (64, 128, 256, 1024)


def random_graph(seed: int, most_nodes: int = 8) -> LoopGraph:
    """A graph of at most `most_nodes` nodes over vectors of several sizes; one node in five is a library call."""
    draw = random.Random(seed)
    build = Builder()
    given = build.add_input("x", Layout.contiguous((SIZES[-1],), torch.float32))
    made: list[TensorValue] = []
    for _ in range(draw.randint(3, most_nodes)):
        known = [given, *made] if draw.random() < 0.4 or not made else made
        sources = draw.sample(known, min(len(known), draw.choice((1, 1, 1, 2, 2, 3))))
        made.append(_node(build, draw, sources))
    graph = build.finish()
    graph.inputs.append("x")
    read = {buffer for node in graph.nodes for buffer in node.read_buffers}
    for value in made:
        if value.buffer not in read or draw.random() < 0.1:
            graph.outputs.append(GraphOutput(value.buffer, value.layout()))
    return without_dead_nodes(graph)[0]


def _node(build: Builder, draw: random.Random, sources: Sequence[TensorValue]) -> TensorValue:
    kind = draw.choices(("call", "sum", "reversed", "pointwise"), (4, 4, 2, 10))[0]
    if kind == "call":
        return _call(build, sources[0])
    if kind == "sum":
        return _sum_of_rows(build, sources[0])
    size = draw.choice((*SIZES, *[known(sources[0].shape[0])] * 4))

    def element(position: Position) -> object:
        values = [source.load((_place(position[0], size, known(source.shape[0]), kind),)) for source in sources]
        total = values[0]
        for value in values[1:]:
            total = ops.add(total, value)
        return ops.sin(total)

    return build.pointwise((size,), torch.float32, element, materialise=True)


def _place(place: Index, size: int, length: int, kind: str) -> Index:
    """Which element of a vector of `length` belongs to one of a vector of `size`."""
    own = place % length if length < size else place * (length // size)
    return Index.number(length - 1) - own if kind == "reversed" else own


def _sum_of_rows(build: Builder, source: TensorValue) -> TensorValue:
    length = known(source.shape[0])
    rows = max(length // 16, 1)

    def element(position: Position, reduced: Position) -> object:
        return ops.reduce("sum", source.load((position[0] * (length // rows) + reduced[0],)))

    return build.reduction((rows,), torch.float32, (length // rows,), element)


def _call(build: Builder, source: TensorValue) -> TensorValue:
    layout = source.layout()
    assert layout is not None and source.buffer is not None
    name, own = build.fresh_name("call"), Layout.contiguous(layout.shape, torch.float32)
    arguments = (TensorArgument(source.buffer, layout), 0)
    call = ExternNode(name, torch.ops.aten.cumsum.default, arguments, {}, ((name, own),), reason="A call.")
    build._nodes.append(call)
    build.graph.buffers[name] = own
    return of_buffer(name, own)


def singles(graph: LoopGraph) -> list[Unit]:
    """The nodes, a kernel each."""
    return [single(node) if isinstance(node, LoopNode) else node for node in graph.nodes]


def all_orders(units: Sequence[Unit], most: int = 4000) -> list[list[Unit]]:
    """Every order in which each unit follows what it reads; the first `most` of them."""
    maker = {name: number for number, unit in enumerate(units) for name in unit.stored}
    needs = [{maker[name] for name in unit.needed if name in maker} for unit in units]

    def continued(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == len(units):
            yield done
        for number in range(len(units)):
            if number not in done and needs[number] <= set(done):
                yield from continued((*done, number))

    return [[units[number] for number in order] for order in islice(continued(()), most)]


def bytes_of(graph: LoopGraph, name: str) -> int:
    return known(graph.buffers[name].storage_numel) * graph.buffers[name].dtype.itemsize


def peak_of_order(order: Sequence[Unit], graph: LoopGraph) -> int:
    """The most bytes at a time, where each result has memory of its own until its last reader has run."""
    unread = Counter(name for unit in order for name in unit.needed)
    held: dict[str, int] = {}
    peak = 0
    for unit in order:
        held |= {name: bytes_of(graph, name) for name in unit.stored}
        peak = max(peak, sum(held.values()))
        unread.subtract(unit.needed)
        held = {name: size for name, size in held.items() if unread[name] > 0 or name in graph.output_buffers}
    return peak


def peak_of_plan(order: Sequence[Unit], graph: LoopGraph, plan: MemoryPlan) -> int:
    """The same with memory used again as the plan says. Raises where a buffer is read after its memory went on to
    another one, or where memory is too small."""
    holder: dict[int, str] = {}
    memory_of: dict[str, int] = {}
    sizes: list[int] = []
    peak = 0
    taken = {b.takes_over for b in plan.buffers.values() if b.takes_over is not None}
    for position, unit in enumerate(order):
        for name in unit.needed & memory_of.keys():
            if holder.get(memory_of[name]) != name:
                raise ValueError(f"{name} is read by {unit.name} when its memory is gone")
        for name in sorted(unit.stored):
            source = plan.buffers[name].takes_over
            if source is None:
                memory_of[name] = len(sizes)
                sizes.append(bytes_of(graph, name))
            else:
                memory_of[name] = memory_of[source]
                if sizes[memory_of[name]] < bytes_of(graph, name):
                    raise ValueError(f"{name} does not fit where {source} was")
            holder[memory_of[name]] = name
        peak = max(peak, sum(sizes[memory] for memory in holder))
        for name in plan.freed_after[position]:
            if name not in taken and holder.get(memory_of[name]) == name:
                del holder[memory_of[name]]
    return peak
