"""Choose how a graph is called: by its wrapper, or by replaying its launches once the first calls show a gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from compiler.capture.captured import Phase
from compiler.decisions import Decision
from compiler.devices import Device
from compiler.replay.held import users_of_memory
from compiler.replay.inputs import Call
from compiler.replay.legality import obstacle, written_inputs
from compiler.replay.replayed import Choice, Facts, ReplayedCall
from compiler.schedule.memory.plan import MemoryPlan
from compiler.schedule.scheduler import Schedule

#: The share of a device's memory that the recording of one graph may keep unless it is asked for.
MOST_MEMORY = 1 / 16
#: The same of what the recordings of all graphs hold for backward graphs.
MOST_HELD = 1 / 4


@dataclass(frozen=True)
class Compiled:
    """A graph on the GPU `device`, whose model is `model`: what is to be launched, and what launches it."""

    schedule: Schedule
    memory: MemoryPlan
    kernels: Mapping[str, Callable[..., None]]
    device: torch.device
    model: Device
    #: Of a forward graph: positions of the outputs that are saved for the backward graph, and nobody else's.
    saved: frozenset[int] = frozenset()


def replayed_or_not(call: Call, graph: Compiled, choice: Choice, phase: Phase) -> ReplayedCall | Decision:
    """A replayed call in place of `call`, the graph's wrapper; or the reason against it."""
    if choice == "off":
        return Decision("replay.off")
    why = obstacle(graph.schedule)
    if why is not None:
        return why
    if choice == "auto" and graph.memory.peak_bytes > MOST_MEMORY * graph.model.memory_bytes:
        return Decision("replay.memory", {"peak_bytes": graph.memory.peak_bytes})
    from compiler.replay.recorder import CudaRecorder
    from compiler.runtime.triton.launch import TritonLauncher

    number = torch.cuda.current_device() if graph.device.index is None else graph.device.index
    launchers = [kernel for kernel in graph.kernels.values() if isinstance(kernel, TritonLauncher)]
    return ReplayedCall(call, facts_of(graph, phase), CudaRecorder(number, launchers), choice)


def facts_of(graph: Compiled, phase: Phase) -> Facts:
    """The facts on a compiled graph that are known before its first call."""

    return Facts(
        len(graph.schedule.units),
        graph.model.bandwidth,
        phase,
        written_inputs(graph.schedule.graph, graph.memory.written_inputs()),
        graph.saved if users_of_memory is not None else frozenset(),
        MOST_HELD * graph.model.memory_bytes,
        graph.memory.peak_bytes,
    )
