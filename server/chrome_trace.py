"""What torch's profiler recorded, in the format of Chrome's traces, which Perfetto opens: complete events of the
"Trace Event Format"."""

from __future__ import annotations

from typing import Any

from compiler.report import Report

NOT_RECORDED = 'no trace was recorded: explore it with the option `trace`, as in --trace FILE or {"trace": true}'
_NOTE = "The profiler takes time of its own: see the report's timing for the times that calls take without it."


def chrome_trace(report: Report) -> dict[str, Any]:
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
    return {"displayTimeUnit": "ms", "otherData": other, "traceEvents": [*names, *events]}


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
