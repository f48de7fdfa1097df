"""Which outputs of a graph a kernel may write to the host's memory instead of the GPU's, where the caller does nothing
with them but read their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.schedule.group import Group
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import Schedule
from compiler.schedule.units import read_by

#: A value of more bytes may be seen half written.
MOST_BYTES = 8
_SIGNATURE = re.compile(r"^def \w+\(.*?\):$", re.DOTALL | re.MULTILINE)


def outputs_for_host(
    schedule: Schedule, plan: MemoryPlan, kernels: Mapping[str, RenderedKernel], places: Iterable[int]
) -> dict[int, str]:
    """The buffers of those of the outputs at `places` that a kernel of ours makes for nobody else, by place."""
    found = {place: _own_buffer(schedule, plan, place) for place in places}
    return {place: name for place, name in found.items() if name and _is_only_stored(name, schedule, kernels)}


def _own_buffer(schedule: Schedule, plan: MemoryPlan, place: int) -> str | None:
    """The buffer that an output of one element has to itself."""
    graph, output = schedule.graph, schedule.graph.outputs[place]
    name = output.buffer
    if name is None or output.layout != graph.buffers[name] or output.is_conjugated or output.is_negated:
        return None
    layout = graph.buffers[name]
    if any(size != 1 for size in layout.shape) or layout.offset != 0 or layout.dtype.itemsize > MOST_BYTES:
        return None
    is_given_once = [other.buffer for other in graph.outputs].count(name) == 1
    takers = {buffer.takes_over for buffer in plan.buffers.values()} | {*plan.slices, *plan.slices.values()}
    if not is_given_once or name in takers or name in graph.elsewhere or plan.buffers[name].takes_over is not None:
        return None
    return None if any(name in read_by(unit) for unit in schedule.units) else name


def _is_only_stored(name: str, schedule: Schedule, kernels: Mapping[str, RenderedKernel]) -> bool:
    """Whether one kernel writes the buffer, by plain stores, and does not read it again: over the bus to the host
    reading is slow, and not every atomic operation is possible."""
    makers = [unit for unit in schedule.units if isinstance(unit, Group) and name in unit.stored]
    if len(makers) != 1 or makers[0].updated:
        return False
    kernel = kernels[makers[0].name]
    if kernel.parameters[0] == name:  # its launch is on the device of the first
        return False
    pointer = re.compile(rf"\b{re.escape(identifier(name))}_ptr\b")
    bodies = _SIGNATURE.sub("", kernel.source)
    uses = [line.strip() for line in bodies.splitlines() if pointer.search(line)]
    return bool(uses) and all(line.startswith("tl.store(") for line in uses)
