"""One call of eager and one of our kernels, as torch's profiler records them.

The profiler takes time of its own, so its events say what happens when, and are no measure of how long a call takes:
that is `measure`'s. Kernels of ours carry the names that the page gives them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from compiler import report as rep
from compiler.capture.captured import CapturedGraph, copy_values
from compiler.capture.torch_state import with_default_dtype
from compiler.runtime.executable import CompiledGraph, build_executable

# The profiler's library tells of each start and stop on standard error, and of a GPU that is not there; it asks once.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

#: Events that a report keeps of each; the longest ones, where there are more.
MOST_EVENTS = 2000
_WARM_UP_CALLS = 2


def recorded(call: Callable[[], object], contestant: str, device: torch.device) -> list[rep.TraceEvent]:
    """The events of one call after two others. Raises what the call raises."""
    for _ in range(_WARM_UP_CALLS):
        call()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities, acc_events=True) as profiler:  # torch 2.11 warns of events that it clears
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    found = [event for event in profiler.events() if event.time_range.end > event.time_range.start]
    kept = sorted(found, key=lambda event: event.time_range.start - event.time_range.end)[:MOST_EVENTS]
    first = min((event.time_range.start for event in kept), default=0.0)
    return sorted(
        (
            rep.TraceEvent(
                contestant=contestant,
                name=event.name[:200],
                track=_track(event),
                start_us=round(event.time_range.start - first, 3),
                duration_us=round(event.time_range.end - event.time_range.start, 3),
            )
            for event in kept
        ),
        key=lambda event: (event.track, event.start_us, -event.duration_us),
    )


def _track(event: Any) -> str:
    is_on_host = event.device_type == torch.autograd.DeviceType.CPU
    return f"thread {event.thread}" if is_on_host else f"stream {event.device_resource_id}"


def call_of_graph(graph: CapturedGraph, compilation: CompiledGraph, report: rep.Graph) -> Callable[[], object] | None:
    """A call of the graph's kernels on the inputs of the snippet, each in a range that is named as on the page; None
    where it was never called or has no kernels."""
    executable, schedule, inputs = compilation.executable, compilation.schedule, graph.inputs
    if inputs is None:
        return None
    names = {kernel.name: f"K{position + 1} {kernel.name}" for position, kernel in enumerate(report.kernels)}
    kernels = {name: partial(_in_range, names.get(name, name), launch) for name, launch in executable.kernels.items()}
    named = build_executable(schedule, executable.wrapper, kernels, compilation.runs_on)

    def call() -> object:
        with torch.no_grad(), with_default_dtype(graph.default_dtype), record_function(graph.name):
            return named.call(copy_values(inputs))

    return call


def _in_range(name: str, launch: Callable[..., None], *arguments: Any) -> None:
    with record_function(name):
        launch(*arguments)
