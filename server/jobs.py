"""Explorations under way: one queue with a limit, one worker at its end, one job at a time.

One at a time is on purpose. Each job times its kernels, and a neighbour on the same device would be measured too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field

import structlog

from compiler.options import Options
from compiler.report import Report
from server.events import EventLog, stage_data
from server.identity import WorkerIdentity
from server.metrics import Metrics
from server.settings import Settings
from server.store import Store, Stored
from server.verdicts import ReportRejected, conclude, empty_report, parse_report, stamp
from server.worker.messages import Ended, Log
from server.worker_process import WorkerProcess, WorkerUnavailable

log = structlog.get_logger(__name__)


class QueueFull(Exception):
    """As many explorations wait as may."""


@dataclass(eq=False)
class Job:
    """One exploration from the moment it is asked for until its report is stored."""

    id: str
    source: str
    options: Options
    worker: WorkerIdentity
    report: Report
    based_on: str | None = None
    events: EventLog = field(default_factory=EventLog)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    is_cancelled: bool = False
    stages_told: int = 0
    rejected: str | None = None
    stored: Stored | None = None

    @property
    def uses_gpu(self) -> bool:
        return self.worker.device == "cuda" and self.options.device != "cpu"


class Jobs:
    """The queue and its one consumer. `find` also knows jobs that finished a short while ago."""

    def __init__(self, settings: Settings, worker: WorkerProcess, store: Store, metrics: Metrics) -> None:
        self._settings = settings
        self._worker = worker
        self._store = store
        self._metrics = metrics
        self._waiting: list[Job] = []
        self._running: Job | None = None
        self._recent: OrderedDict[str, Job] = OrderedDict()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        metrics.queue_depth.set_function(lambda: len(self._waiting))

    def start(self) -> None:
        self._task = asyncio.create_task(self._consume(), name="jobs")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for job in [*self._waiting, *([self._running] if self._running else [])]:
            # Readers of the events must not be left waiting for a service that is going away.
            await job.events.append("done", {"status": "cancelled"})

    def active(self, id: str) -> Job | None:
        """The job with this id that waits or runs."""
        job = self.find(id)
        return None if job is None or job.finished.is_set() else job

    def find(self, id: str) -> Job | None:
        if self._running is not None and self._running.id == id:
            return self._running
        return next((job for job in self._waiting if job.id == id), self._recent.get(id))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def submit(
        self, id: str, source: str, options: Options, worker: WorkerIdentity, based_on: str | None = None
    ) -> Job:
        """Puts a new job at the end of the queue. Raises `QueueFull`."""
        if len(self._waiting) >= self._settings.queue_limit:
            self._metrics.refused.inc()
            raise QueueFull
        job = Job(id, source, options, worker, empty_report(id, source, options, worker, based_on), based_on)
        self._recent.pop(id, None)
        self._waiting.append(job)
        position = len(self._waiting) + (self._running is not None)
        self._arrived.set()
        await job.events.append("queued", {"position": position})
        return job

    async def cancel(self, job: Job) -> None:
        """Ends the job wherever it is. Returns before a running one has ended; its events tell when."""
        job.is_cancelled = True
        if job in self._waiting:
            self._waiting.remove(job)
            await self._finish(job, Ended(job=job.id, ending="cancelled"))
            await self._tell_positions()
        elif self._running is job:
            await self._worker.cancel(job.id)

    async def _consume(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                job = self._running = self._waiting.pop(0)
                try:
                    await self._tell_positions()
                    await self._run(job)
                except Exception:
                    # One job must never end the queue, whatever went wrong with it.
                    log.exception("job_failed", job=job.id)
                    if not job.finished.is_set():
                        await self._finish(job, Ended(job=job.id, ending="worker_lost"))
                finally:
                    if job.finished.is_set():
                        self._running = None

    async def _run(self, job: Job) -> None:
        started = time.monotonic()
        limit = self._settings.gpu_wall_seconds if job.uses_gpu else self._settings.wall_seconds
        ended = Ended(job=job.id, ending="cancelled" if job.is_cancelled else "worker_lost")
        if not job.is_cancelled:
            try:
                async for item in self._worker.run(job.id, job.source, job.options, limit):
                    if isinstance(item, Ended):
                        ended = item
                    elif isinstance(item, Log):
                        await job.events.append("log", {"text": item.text})
                    else:
                        await self._take_report(job, item)
            except WorkerUnavailable as unavailable:
                log.error("worker_unavailable", job=job.id, reason=str(unavailable))
        if job.is_cancelled:
            ended = ended.model_copy(update={"ending": "cancelled"})
        await self._finish(job, ended, limit)
        self._metrics.job_seconds.labels("cuda" if job.uses_gpu else "cpu", job.report.status).observe(
            time.monotonic() - started
        )

    async def _take_report(self, job: Job, raw: bytes) -> None:
        try:
            report = await asyncio.to_thread(parse_report, raw)
        except ReportRejected as rejection:
            job.rejected = str(rejection)
            return
        job.report = stamp(report, job.id, job.source, job.options, job.worker, job.based_on)
        await self._tell_stages(job)

    async def _tell_stages(self, job: Job) -> None:
        fresh = range(job.stages_told, len(job.report.stages))
        if not fresh:
            return
        # "done" is not told before the job has ended and the report is stored, so no stage event may claim it.
        so_far = job.report.model_copy(update={"status": "running"})
        body = await asyncio.to_thread(so_far.model_dump_json)
        for position in fresh:
            await job.events.append("stage", stage_data(job.report, position, body))
        job.stages_told = fresh.stop

    async def _tell_positions(self) -> None:
        for ahead, job in enumerate(self._waiting, start=1):
            await job.events.append("queued", {"position": ahead + (self._running is not None) - 1})

    async def _finish(self, job: Job, ended: Ended, limit: float = 0.0) -> None:
        job.report = conclude(job.report, ended, limit, job.rejected)
        job.stored = await self._store.put(job.report)
        self._worker.forget(job.id)
        job.finished.set()
        self._recent[job.id] = job
        self._recent.move_to_end(job.id)
        while len(self._recent) > self._settings.recent_jobs:
            self._recent.popitem(last=False)
        await job.events.append("done", {"status": job.report.status})
        log.info("job_done", job=job.id, status=job.report.status, ending=ended.ending, wall=ended.wall_seconds)
