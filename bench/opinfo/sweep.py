"""The sweep: all samples of all operators, in a few processes at a time, and what came of them in figures.

A process that dies or hangs loses the sample that it was at; the others that it had not reported are run again in its
successor.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bench.opinfo import database
from bench.opinfo.database import Job
from bench.opinfo.exceptions import NOT_RUN, RANDOM, UNINITIALISED, WITHOUT_VALUE
from bench.opinfo.packets import Met, packets_report
from bench.opinfo.worker import place_of
from bench.process import Message, run_worker

#: Seconds without a word from a process after which it is ended: the C++ compiler may take long over a large batch.
PATIENCE_S = 300.0

#: Operator, dtype, direction, share and shares of a job.
Key = tuple[str, str, str, int, int]


@dataclass(frozen=True)
class Request:
    """What to sweep: `jobs` on torch's device `device`, `count` samples of each (None for all)."""

    jobs: tuple[Job, ...]
    device: str
    count: int | None = None
    seed: int = 0
    processes: int = 2


@dataclass
class Progress:
    """What is known of each job so far. `seen` and `reported` hold the numbers of samples."""

    environment: dict[str, Any] = field(default_factory=dict)
    counts: defaultdict[tuple[str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    problems: list[Message] = field(default_factory=list)
    unsampled: dict[str, str] = field(default_factory=dict)
    met: Met = field(default_factory=Met)
    seen: defaultdict[Key, set[int]] = field(default_factory=lambda: defaultdict(set))
    reported: defaultdict[Key, set[int]] = field(default_factory=lambda: defaultdict(set))
    sampled: set[Key] = field(default_factory=set)

    def is_finished(self, key: Key) -> bool:
        return key in self.sampled and self.seen[key] <= self.reported[key]


def sweep(request: Request, on_progress: Callable[[Progress], None]) -> Progress:
    """Run everything; `on_progress` hears of each sample's outcome, in one thread at a time."""
    progress, lock = Progress(), threading.Lock()
    # An operator's jobs, or those of a share of it, stay together; neighbours in the database, which take alike long,
    # go to different processes.
    groups: dict[tuple[str, int], list[Job]] = {}
    for job in request.jobs:
        groups.setdefault((job.operator, job.share), []).append(job)
    parts = [
        [job for group in list(groups.values())[place :: request.processes] for job in group]
        for place in range(request.processes)
    ]
    with ThreadPoolExecutor(request.processes) as pool:
        for done in [pool.submit(_run_part, part, request, progress, lock, on_progress) for part in parts if part]:
            done.result()
    return progress


def _run_part(
    jobs: Sequence[Job], request: Request, progress: Progress, lock: threading.Lock, on_progress: Any
) -> None:
    keys: list[Key] = [tuple(place_of(job)) for job in jobs]  # type: ignore[misc]
    while remaining := [key for key in keys if not progress.is_finished(key)]:
        at: list[Message] = []

        def hear(message: Message, at: list[Message] = at) -> None:
            with lock:
                _note(message, progress, at)
                if message["event"] == "outcome":
                    on_progress(progress)

        orders = {
            "jobs": [[*key, sorted(progress.reported[key])] for key in remaining],
            "device": request.device,
            "count": request.count,
            "seed": request.seed,
        }
        ending = run_worker("bench.opinfo.worker", orders, hear, PATIENCE_S)
        if at and at[-1]["event"] == "end":
            return
        if not at:
            raise RuntimeError(f"a process of the sweep did not start: {ending}")
        with lock:
            _blame(at[-1], ending, progress)


def _note(message: Message, progress: Progress, at: list[Message]) -> None:
    event = message["event"]
    key = tuple(message.get("job", ()))
    if event == "environment":
        progress.environment = progress.environment or message["environment"]
    elif event in ("at", "end"):
        at[:] = [message]
        if message.get("number", -1) >= 0:
            progress.seen[key].add(message["number"])
    elif event == "unsampled":
        progress.unsampled[" ".join(key[:3])] = message["sentence"]
    elif event == "job":
        progress.sampled.add(key)
    elif event == "outcome":
        _count(message, key, progress)


def _count(message: Message, key: Key, progress: Progress) -> None:
    progress.reported[key].add(message["number"])
    counts = progress.counts[key[:3]]
    counts[message["status"]] += 1
    counts["by_float64"] += message.get("by_float64", False)
    counts["broken"] += message.get("is_broken", False)
    progress.met.add(message.get("packets", {}), key[1])
    if message["status"] in ("wrong", "failed"):
        problem = {name: message[name] for name in ("number", "status", "inputs", "sentence")}
        progress.problems.append({"operator": key[0], "dtype": key[1], "direction": key[2], **problem})


def _blame(at: Message, ending: str, progress: Progress) -> None:
    key: Key = tuple(at["job"])
    sentence = f"while {at['what']}: {ending}"
    if at["number"] < 0:
        progress.sampled.add(key)
        progress.unsampled[" ".join(key[:3])] = sentence
        return
    _count({"number": at["number"], "status": "failed", "inputs": "", "sentence": sentence}, key, progress)


# --- in figures


def document(request: Request, progress: Progress) -> dict[str, Any]:
    """Everything as plain JSON."""
    return {
        "suite": "opinfo",
        "environment": progress.environment,
        "samples_of_each_operator": request.count or "all",
        "operators": len({job.operator for job in request.jobs}),
        "shares": shares(progress),
        "packets": packets_report(progress.met),
        "problems": sorted(progress.problems, key=lambda p: (p["operator"], p["direction"], p["dtype"], p["number"])),
        "not_sampled": dict(sorted(progress.unsampled.items())),
        "judged_by_distribution": sorted(RANDOM),
        "judged_by_shape": sorted(UNINITIALISED),
        "results_judged_by_shape": WITHOUT_VALUE,
        "not_run": NOT_RUN,
        "counts": {" ".join(key): dict(counts) for key, counts in sorted(progress.counts.items())},
    }


def shares(progress: Progress) -> dict[str, dict[str, Any]]:
    """By direction and dtype: samples that eager takes, how many of them are right, and the share."""
    totals: dict[str, Counter[str]] = {}
    for (_, dtype, direction), counts in progress.counts.items():
        totals.setdefault(f"{direction} {dtype}", Counter()).update(counts)
    order = [*(f"forward {str(dtype).removeprefix('torch.')}" for dtype in database.FORWARD_DTYPES), *sorted(totals)]
    return {name: _share(totals[name]) for name in dict.fromkeys(order) if name in totals}


def _share(counts: Counter[str]) -> dict[str, Any]:
    judged = sum(counts[status] for status in ("right", "wrong", "failed"))
    return {
        "samples": judged,
        **{name: counts[name] for name in ("right", "wrong", "failed", "by_float64", "broken", "refused")},
        "share_right": counts["right"] / judged if judged else None,
    }
