"""What a schedule takes of memory, beside what its nodes would take without fusion, as the report shows it."""

from __future__ import annotations

from dataclasses import replace

from compiler import report
from compiler.ir.size import hint
from compiler.schedule.describe.schedule import describe_buffers
from compiler.schedule.memory.lifetimes import lifetimes, storage_bytes
from compiler.schedule.memory.order import as_written
from compiler.schedule.memory.plan import MemoryPlan, plan_memory
from compiler.schedule.scheduler import Schedule, without_fusion


def describe_memory(schedule: Schedule, plan: MemoryPlan) -> report.Memory:
    """The figures of `report.Memory`."""
    unfused = without_fusion(schedule)
    unfused_plan = plan_memory(unfused)
    unordered = replace(schedule, units=tuple(as_written(schedule.units, schedule.graph)))
    return report.Memory(
        peak_bytes=plan.peak_bytes,
        unordered_peak_bytes=plan_memory(unordered).peak_bytes,
        without_reuse_bytes=_all_bytes(schedule),
        reuses=_reuses(plan),
        unfused_peak_bytes=unfused_plan.peak_bytes,
        unfused_without_reuse_bytes=_all_bytes(unfused),
        unfused_reuses=_reuses(unfused_plan),
        live_bytes=list(plan.live_bytes),
        unfused_live_bytes=list(unfused_plan.live_bytes),
        unfused_buffers=describe_buffers(unfused_plan),
    )


def _all_bytes(schedule: Schedule) -> int:
    graph = schedule.graph
    return sum(life.bytes for life in lifetimes(schedule.units, graph.buffers, graph.output_buffers).values())


def _reuses(plan: MemoryPlan) -> list[report.Reuse]:
    """In the order of the kernels."""
    return [
        report.Reuse(
            buffer=buffer.name,
            takes_over=buffer.takes_over,
            bytes=hint(storage_bytes(buffer.layout)),
            in_place=buffer.fate != "reused",
        )
        for buffer in plan.buffers.values()
        if buffer.takes_over is not None
    ]
