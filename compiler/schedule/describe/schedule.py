"""The schedule as the report shows it: loop nodes, buffers, bytes, and what it takes of memory beside what its nodes
would take without fusion. Decisions are in `decisions.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from compiler import report
from compiler.ir.body import Access
from compiler.ir.nodes import ExternNode, LoopGraph, LoopNode
from compiler.ir.size import Integer, hint
from compiler.lowering.registry import operator_name
from compiler.schedule.cost.touches import touched_bytes
from compiler.schedule.memory.lifetimes import lifetimes, storage_bytes, wholes_of
from compiler.schedule.memory.order import as_written
from compiler.schedule.memory.plan import MemoryPlan, PlannedBuffer, plan_memory
from compiler.schedule.scheduler import Schedule, without_fusion


def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def shown(sizes: Sequence[Integer]) -> list[int | str]:
    """Sizes as the report has them: a formula where they differ from call to call."""
    return [size if isinstance(size, int) else size.text for size in sizes]


def describe_loops(graph: LoopGraph, dead: tuple[str, ...]) -> list[report.LoopNode]:
    """Every node before fusion, dead ones marked."""
    gone = frozenset(dead)
    return [
        _describe_loop(node, graph, node.name in gone)
        if isinstance(node, LoopNode)
        else _describe_extern(node, node.name in gone)
        for node in graph.nodes
    ]


def _describe_loop(node: LoopNode, graph: LoopGraph, is_dead: bool) -> report.LoopNode:
    count = hint(node.numel) * hint(node.reduction_numel)

    def access(a: Access) -> report.Access:
        return report.Access(
            buffer=a.buffer, index=str(a.index), bytes=touched_bytes(a, count, graph.buffers[a.buffer])
        )

    return report.LoopNode(
        name=node.name,
        kind=node.kind,
        sizes=shown([dim.size for dim in node.x_dims]),
        reduction_sizes=shown([dim.size for dim in node.r_dims]),
        dtype=dtype_name(node.layout.dtype),
        shape=shown(node.layout.shape),
        body=node.body.lines(),
        reads=[access(a) for a in node.body.reads],
        writes=[access(a) for a in node.body.writes],
        origins=list(node.origins),
        lines=list(node.lines),
        dead=is_dead,
        updates=node.updates,
        part_of=node.part_of,
    )


def _describe_extern(node: ExternNode, is_dead: bool) -> report.LoopNode:
    first = next((layout for output in node.outputs if output for layout in [output[1]]), None)
    reads = [report.Access(buffer=t.buffer, index="all of it", bytes=t.layout.bytes) for t in node.tensor_arguments]
    writes = [
        report.Access(buffer=output[0], index="all of it", bytes=output[1].bytes) for output in node.outputs if output
    ]
    name = operator_name(node.target)
    return report.LoopNode(
        name=node.name,
        kind="extern",
        dtype=dtype_name(first.dtype) if first else None,
        shape=shown(first.shape) if first else None,
        body=[f"{name}: {node.reason}" if node.reason else name],
        reads=reads,
        writes=writes,
        origins=list(node.origins),
        lines=list(node.lines),
        dead=is_dead,
        fallback=node.is_fallback,
    )


def with_parts(graph: LoopGraph, scheduled: LoopGraph) -> LoopGraph:
    """The graph with the parts of what its schedule writes part by part in the place of the whole."""
    parts: defaultdict[str, list[LoopNode]] = defaultdict(list)
    for node in scheduled.nodes:
        if isinstance(node, LoopNode) and node.part_of is not None:
            parts[node.part_of].append(node)
    nodes = [new for node in graph.nodes for new in parts.get(node.name, (node,))]
    return replace(graph, nodes=nodes, buffers=graph.buffers | scheduled.buffers)


def sums_in_any_order(graph: LoopGraph) -> list[str]:
    """Scatters that add floats: on a GPU in the order in which its programs come by, so that roundings differ."""
    return [
        node.name
        for node in graph.nodes
        if isinstance(node, LoopNode)
        and any(i.op == "store" and i.value == "add" and i.dtype.is_floating_point for i in node.body.instructions)
    ]


def describe_buffers(schedule: Schedule, plan: MemoryPlan) -> list[report.Buffer]:
    parts = wholes_of(schedule.units)
    return [
        report.Buffer(
            name=b.name,
            shape=shown(b.layout.shape),
            stride=shown(b.layout.stride),
            dtype=dtype_name(b.layout.dtype),
            bytes=b.layout.bytes,
            first=b.first,
            last=b.last,
            fate=b.fate,
            takes_over=b.takes_over,
            note=_note(b, parts),
        )
        for b in plan.buffers.values()
    ]


def _note(buffer: PlannedBuffer, parts: Collection[str]) -> str | None:
    if buffer.takes_over is None:
        return None
    if buffer.name in parts:
        return f"shares the storage of {buffer.takes_over}: each fills a part of it"
    return f"takes over the storage of {buffer.takes_over}"


def describe_memory(schedule: Schedule, plan: MemoryPlan) -> report.Memory:
    """The figures of `report.Memory`."""
    unfused = without_fusion(schedule)
    unfused_plan = plan_memory(unfused, plan.written_back)
    unordered = replace(schedule, units=tuple(as_written(schedule.units, schedule.graph)))
    return report.Memory(
        peak_bytes=plan.peak_bytes,
        unordered_peak_bytes=plan_memory(unordered, plan.written_back).peak_bytes,
        without_reuse_bytes=_all_bytes(schedule),
        reuses=_reuses(schedule, plan),
        unfused_peak_bytes=unfused_plan.peak_bytes,
        unfused_without_reuse_bytes=_all_bytes(unfused),
        unfused_reuses=_reuses(unfused, unfused_plan),
        live_bytes=list(plan.live_bytes),
        unfused_live_bytes=list(unfused_plan.live_bytes),
        unfused_buffers=describe_buffers(unfused, unfused_plan),
    )


def _all_bytes(schedule: Schedule) -> int:
    graph = schedule.graph
    return sum(life.bytes for life in lifetimes(schedule.units, graph.buffers, graph.output_buffers).values())


def _reuses(schedule: Schedule, plan: MemoryPlan) -> list[report.Reuse]:
    """In the order of the kernels. Parts of a concatenation are one buffer, of which none gets the memory of another:
    all of them are needed."""
    parts = wholes_of(schedule.units)
    return [
        report.Reuse(
            buffer=buffer.name,
            takes_over=buffer.takes_over,
            bytes=hint(storage_bytes(buffer.layout)),
            in_place=buffer.fate != "reused",
        )
        for buffer in plan.buffers.values()
        if buffer.takes_over is not None and buffer.name not in parts
    ]
