"""A job while it runs, and what its report becomes: the parts as they came, and over them what the service knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from compiler.report import Environment, Observed, Report, Stage, SweepResult, WhatIf
from server.apart import Apart, TooLong, WentWrong
from server.database.compressed import body_of
from server.database.jobs import Job
from server.database.reports import REUSABLE, Finished
from server.events import MOST_CHANGED_BYTES, NOT_IN_STAGES
from server.identity import compiler_version
from server.observed import contradictions, observed
from server.verdicts import Unrun, Verdict, believed_verdict, conclude, never_ran
from server.wire.messages import Ended
from server.wire.parts import Parts, PartsRejected, as_object, checked, join

_LARGE = 256 * 1024
"""Bytes that are read in a thread in some 20 ms; Python's lock is held meanwhile. More of them are read apart."""
_MOST_SECONDS = 60.0
READERS = Apart(2, (__name__,), (PartsRejected,))

log = structlog.get_logger(__name__)


@dataclass
class RunningReport:
    """The report of one attempt, from nothing to what is stored. One method at a time; `body` and `finish_unrun` are
    slow for a large report: use a thread."""

    job: Job
    most_bytes: int
    rejected: str | None = None
    _pending: set[str] = field(default_factory=set)
    _stages_told: int = 0
    _is_told_whole: bool = True

    def __post_init__(self) -> None:
        self._claimed = Environment()
        self._parts = Parts(empty_report(self.job), self.most_bytes)

    async def take(self, payload: bytes) -> list[tuple[bytes, bytes]]:
        """Takes parts that changed. Of each stage that is new: the stage, and all parts that changed since the last;
        once these were too many, the list of stages alone."""
        if self.rejected is not None:
            return []
        read = partial(checked, payload, self._parts.graphs)
        try:
            if len(payload) >= _LARGE:
                changes = await READERS.soon(self.job.client, len(payload), _MOST_SECONDS, read)
                return await asyncio.to_thread(self._take, lambda: changes)
            return await asyncio.to_thread(self._take, read)
        except PartsRejected as rejection:
            self.rejected = str(rejection)
        except (TooLong, WentWrong) as failure:
            self._reject(failure)
        return []

    def _take(self, read: Callable[[], dict[str, bytes | None]]) -> list[tuple[bytes, bytes]]:
        different = self._parts.replace(read())
        if "/environment" in different:
            self._claimed = self._parts.field("environment")
            self._parts.write(environment=known_environment(self._claimed, self.job, None))
        self._pending |= set(different) - NOT_IN_STAGES
        if "/stages" not in different:
            return []
        stages = self._parts.field("stages")
        fresh, self._stages_told = stages[self._stages_told :], max(self._stages_told, len(stages))
        told = []
        for place, stage in enumerate(fresh, start=1):
            # Of stages that end together only the last brings what they made.
            names = sorted(name for name in self._pending if name in self._parts) if place == len(fresh) else []
            changed = as_object(self._parts.all(), names)
            self._is_told_whole = self._is_told_whole and len(changed) <= MOST_CHANGED_BYTES
            if not self._is_told_whole:
                # What changes of parts that a reader does not have would make no sense to it.
                changed = as_object(self._parts.all(), [name for name in names if name == "/stages"])
            told.append((stage.model_dump_json().encode(), changed))
            self._pending -= set(names)
        return told

    def body(self, seen: Observed | None) -> bytes:
        """The report so far, as JSON: "running", whatever the snippet's process claims, and `seen` of it till now."""
        told = b"null" if seen is None else seen.model_dump_json().encode()
        return join(self._parts.all() | {"/status": b'"running"', "/observed": told})

    async def finish(
        self, ended: Ended, wall_limit: float, last_event: int, build: str
    ) -> tuple[Finished, list[Stage]]:
        """What is stored of an attempt that ended so, and its stages."""
        finish = partial(self._finish, ended, wall_limit, last_event, build)
        if self._parts.size >= _LARGE:
            try:
                return await READERS.soon(self.job.client, self._parts.size, _MOST_SECONDS, finish)
            except (TooLong, WentWrong) as failure:
                self._reject(failure)
                self._parts = Parts(empty_report(self.job), self.most_bytes)
        return await asyncio.to_thread(finish)

    def _reject(self, failure: TooLong | WentWrong) -> None:
        """To run the job again would end the same way. A defect of ours may look like this: the log tells of it."""
        log.error("report_not_read", job=self.job.name, exception=repr(failure))
        self.rejected = "It takes too long or too much memory to read."

    def _finish(self, ended: Ended, wall_limit: float, last_event: int, build: str) -> tuple[Finished, list[Stage]]:
        claimed = self._parts.report().model_copy(update={"environment": self._claimed})
        told = contradictions(claimed, ended, self.job.profile)
        verdict = conclude(claimed, ended, wall_limit, self.rejected)
        if told.are_of_times:
            self._withhold_times(claimed)
        head = self._parts.head()
        self._parts.write(
            environment=known_environment(self._claimed, self.job, ended),
            observed=observed(ended, self.job.profile, self.job.attempt, wall_limit, told.sentences),
            summary=head.summary.model_copy(update={"verdict": believed_verdict(head.summary.verdict, told.sentences)}),
        )
        return self._finished(head.what_if, verdict, not told.sentences, last_event, build), head.stages

    def finish_unrun(self, verdict: Verdict, last_event: int, build: str) -> Finished:
        """What is stored of a job that did not run to an end of its own."""
        return self._finished(self._parts.head().what_if, verdict, True, last_event, build)

    def _finished(
        self, asked: list[WhatIf], verdict: Verdict, is_believed: bool, last_event: int, build: str
    ) -> Finished:
        self._parts.write(status=verdict.status, error=verdict.error)
        return Finished(
            id=self.job.id,
            attempt=self.job.attempt,
            status=verdict.status,
            is_reusable=verdict.status in REUSABLE and is_believed,
            build=build,
            based_on=self.job.based_on,
            asked=asked_in_short(asked),
            last_event=last_event,
            body=body_of(self._parts.all()),
        )

    def _withhold_times(self, claimed: Report) -> None:
        """Leaves out all that was measured: one time that cannot be makes the others worth nothing."""
        none = dict.fromkeys(("eager_ms", "compiled_ms", "peer_ms", "speedup"))
        self._parts.write(
            timing=None, sweep=_without_times(claimed.sweep), summary=claimed.summary.model_copy(update=none)
        )
        untimed: dict[str, Any] = dict.fromkeys(("measured_us", "spread_us", "gb_per_s", "percent_of_peak"))
        for number, graph in enumerate(claimed.graphs):
            kernels = [kernel.model_copy(update=untimed) for kernel in graph.kernels]
            self._parts.write_of_graph(number, kernels=kernels, call_us=None)


def empty_report(job: Job) -> Report:
    """The report of an exploration that has not begun."""
    report = Report(id=job.id, source=job.source, options=job.options.model_dump(mode="json"), based_on=job.based_on)
    return report.model_copy(update={"environment": known_environment(report.environment, job, None)})


def unrun_report(job: Job, why: Unrun, tries: int, last_event: int, build: str, most_bytes: int) -> Finished:
    """What is stored of a job that did not run; `why` as in `verdicts.never_ran`."""
    verdict = never_ran(why, tries)
    return RunningReport(job, most_bytes).finish_unrun(verdict, last_event, build)


def known_environment(claimed: Environment, job: Job, ended: Ended | None) -> Environment:
    """The environment with what the service knows in the place of what is claimed."""
    profile = job.profile
    device = (ended.device if ended else "") or profile.device
    name = (ended.device_name if ended else "") or profile.device_name
    known = {"python": profile.python, "torch": profile.torch, "triton": profile.triton, "seed": job.options.seed}
    if not (claimed.device == "cpu" and device != "cpu"):
        same = claimed.device.partition(":")[0] == device
        known |= {"device": claimed.device if same else device, "device_name": name}
    if not claimed.target:
        known["target"] = job.options.target
    return claimed.model_copy(update={**known, "compiler": compiler_version()})


def asked_in_short(told: list[WhatIf]) -> str:
    return "; ".join(f"{one.option.replace('_', ' ')} {', '.join(one.asked)}" for one in told)[:400]


def _without_times(sweep: SweepResult | None) -> SweepResult | None:
    if sweep is None:
        return None
    none = dict.fromkeys(("measured_us", "eager_ms", "compiled_ms"))
    return sweep.model_copy(update={"sizes": [size.model_copy(update=none) for size in sweep.sizes]})
