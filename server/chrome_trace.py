"""What torch's profiler recorded, in the format of Chrome's traces, which Perfetto opens: complete events of the
"Trace Event Format"."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from compiler.report import Report

NOT_RECORDED = 'no trace was recorded: explore it with the option `trace`, as in --trace FILE or {"trace": true}'
_NOTE = "The profiler takes time of its own: see the report's timing for the times that calls take without it."


class ChromeTrace(BaseModel):
    """A file in the format of Chrome's traces; its names are that format's."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "displayTimeUnit": "ms",
                "otherData": {"device": "NVIDIA H200"},
                "traceEvents": [
                    {"name": "K1 fused_sin_mul", "ph": "X", "pid": 2, "tid": 3, "ts": 12.5, "dur": 3.1},
                ],
            }
        }
    )

    displayTimeUnit: str = Field(default="ms", description="The unit that a viewer shows; events are in microseconds.")
    otherData: dict[str, str] = Field(description="The device, the exploration, and what is to be known of the times.")
    traceEvents: list[dict[str, Any]] = Field(description="Names of processes and threads, then what ran in them.")


def chrome_trace(report: Report) -> ChromeTrace:
    """One process for each contestant, one thread for each of its tracks, so that two calls stand above each other.
    Raises `LookupError` where nothing was recorded."""
    if not report.trace:
        raise LookupError(NOT_RECORDED)
    processes: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    events: list[dict[str, Any]] = []
    for event in report.trace:
        process = processes.setdefault(event.contestant, len(processes) + 1)
        thread = threads.setdefault((event.contestant, event.track), len(threads) + 1)
        events.append(
            {
                "name": event.name,
                "ph": "X",
                "pid": process,
                "tid": thread,
                "ts": event.start_us,
                "dur": event.duration_us,
            }
        )
    names = [_named("process_name", process, 0, contestant) for contestant, process in processes.items()]
    names += [
        _named("thread_name", processes[contestant], thread, track) for (contestant, track), thread in threads.items()
    ]
    device = report.environment.device_name or report.environment.device
    other = {"device": device, "exploration": report.id, "note": _NOTE}
    return ChromeTrace(otherData=other, traceEvents=[*names, *events])


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
