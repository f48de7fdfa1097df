"""Jobs from the table to the executor and back: takes the next one when a slot is free, follows it, and stores what
came of it. Every task here is supervised, and the table decides: whatever is lost here is found there again.

A job that comes while a slot is free and nobody waits for it is leased by the transaction that writes it down, and
begun at once. All others are taken from the table.

    take      leases jobs while the executor has free slots of their profile
    renew     prolongs the leases of what runs here, and hears of cancellations
    look      tells positions, ends what is cancelled or unwanted, puts back what has expired
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args

import structlog

from compiler.options import StageName
from server.database.engine import DatabaseUnavailable
from server.database.jobs import Job, JobTable
from server.database.new_jobs import Limits as QueueLimits
from server.database.new_jobs import Wanted
from server.database.reports import Finished, Reports, Stored
from server.events import stage_data
from server.executors.protocol import Executor, Handle, NoSlot, Spec
from server.metrics import Metrics
from server.running import RunningReport, unrun_report
from server.settings import WebSettings
from server.supervised import Supervised
from server.verdicts import Unrun
from server.watched import Watch, Watches
from server.wire.messages import NO_SLOT, Changed, Ended, Limits, Log, Started, WorkerIdentity

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
_STOP_SECONDS = 10.0
_STORE_PAUSES_SECONDS = (0.1, 0.3, 1.0)
T = TypeVar("T")
MIB = 1024 * 1024


@dataclass(eq=False)
class _Run:
    """One attempt that runs here."""

    job: Job
    handle: Handle
    watch: Watch
    wall_seconds: float
    is_cancelled: bool = False
    is_lost: bool = False
    is_begun: bool = False
    started: float | None = None
    """By the clock, for the table and for readers."""
    overdue_at: float | None = None
    """By the time that this process has lived, since a clock may be set: when web gives up the attempt, whatever the
    worker says."""


class Dispatcher:
    """The jobs of one web. `build` is this build, whose jobs alone it takes."""

    def __init__(
        self,
        settings: WebSettings,
        table: JobTable,
        reports: Reports,
        executor: Executor,
        watches: Watches,
        metrics: Metrics,
        build: str,
    ) -> None:
        self._settings = settings
        self._table = table
        self._reports = reports
        self._executor = executor
        self._watches = watches
        self._metrics = metrics
        self._build = build
        self._runs: dict[str, _Run] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._kept: Counter[WorkerIdentity] = Counter()
        """Free slots that are kept for jobs which are being written down."""
        self._arrived = asyncio.Event()
        self._is_stopping = False
        self._looked_at = time.time()
        self._changing: set[str] = set()
        self._renewed_at = self._told_wanted_at = time.monotonic()
        self.waiting = 0
        """Jobs that wait, when they were counted last."""
        self.seconds_a_job = 5.0
        """What a job takes, of late: for estimates."""

    def start(self, tasks: Supervised) -> None:
        for name, step in (("dispatcher", self._take), ("leases", self._renew), ("queue", self._look)):
            tasks.forever(name, step, expected=(DatabaseUnavailable,))

    async def stop(self) -> None:
        """Ends what runs here and puts it back into the queue, for whoever comes next. Its readers are told nothing:
        they ask again. The supervised tasks must have stopped."""
        self._is_stopping = True
        for run in list(self._runs.values()):
            await run.handle.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
            for task in late:
                task.cancel()

    async def put(
        self, wanted: Wanted, limits: QueueLimits, is_refresh: bool, admit: Callable[[], None]
    ) -> Stored | Watch:
        """Writes a job down for good, or finds that there is one already, or its report. Raises `QueueFull`, and what
        `admit` raises."""
        # Whoever asks may go away at any moment, and must leave no job behind that is leased and not begun.
        found = await asyncio.shield(self._spawn(self._put(wanted, limits, is_refresh, admit)))
        await self._table.flush()
        return found

    def arrived(self) -> None:
        """To be called where the table may say something new."""
        self._arrived.set()

    async def cancel(self, id: str) -> None:
        """Ends the job wherever it is. Returns before a running one has ended; its events tell when."""
        job = await self._table.cancel(id)
        if job is None:
            return
        if job.state == "queued":
            await self._end_unrun(job, "cancelled")
        elif (run := self._runs.get(job.name)) is not None:
            run.is_cancelled = True
            await run.handle.cancel()

    async def _put(
        self, wanted: Wanted, limits: QueueLimits, is_refresh: bool, admit: Callable[[], None]
    ) -> Stored | Watch:
        with self._slot_for(wanted.profile) as is_kept:
            lease_seconds = self._settings.lease_seconds if is_kept else None
            found = await self._table.enqueue(wanted, limits, self.seconds_a_job, is_refresh, lease_seconds, admit)
            if isinstance(found, Stored):
                return found
            self._reports.forget(wanted.id)
            watch = self._watches.of(found.job)
            if found.before is not None:
                watch.tell_position(found.before)
                if found.job.state == "leased":
                    await self._submit(found.job)
                    return watch
        self._arrived.set()
        return watch

    @contextlib.contextmanager
    def _slot_for(self, profile: WorkerIdentity) -> Iterator[bool]:
        """Whether a slot is free; within, it is kept for whoever asks."""
        is_free = not self._is_stopping and self._free(profile) > 0
        self._kept[profile] += is_free
        try:
            yield is_free
        finally:
            self._kept[profile] -= is_free

    def _free(self, profile: WorkerIdentity) -> int:
        """Slots of that profile that a job could be given now."""
        free = sum(device.free for device in self._executor.devices() if device.ready and device.profile == profile)
        return free - self._kept[profile]

    async def _take(self) -> None:
        changed = asyncio.create_task(self._executor.changed())
        arrived = asyncio.create_task(self._arrived.wait())
        try:
            await self._take_all()
            await asyncio.wait((changed, arrived), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (changed, arrived):
                waiting.cancel()

    async def _take_all(self) -> None:
        self._arrived.clear()
        while profiles := {device.profile for device in self._executor.devices() if self._free(device.profile) > 0}:
            as_json = [profile.model_dump_json() for profile in profiles]
            job = await self._table.lease(as_json, self._build, self._settings.lease_seconds)
            if job is None:
                return
            if not await self._submit(job):
                return

    async def _submit(self, job: Job) -> bool:
        """Whether the executor has taken it."""
        seconds = self._settings.gpu_wall_seconds if job.uses_gpu else self._settings.wall_seconds
        limits = Limits(
            wall_seconds=seconds,
            output_bytes=self._settings.output_kib * 1024,
            report_bytes=self._settings.report_mib * MIB,
        )
        try:
            handle = await self._executor.submit(Spec(job.name, job.source, job.options, limits, job.profile))
        except NoSlot:
            await self._table.give_back(job, has_run=False, counts=False)
            return False
        watch = self._watches.of(job)
        watch.job, watch.report = job, RunningReport(job, self._settings.report_mib * MIB)
        run = self._runs[job.name] = _Run(job, handle, watch, seconds)
        self._metrics.queue_seconds.observe(time.time() - job.queued_at)
        self._spawn(self._follow(run))
        if self._is_stopping:
            await handle.cancel()
        return True

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _follow(self, run: _Run) -> None:
        """One attempt from its begin to its end. Whatever goes wrong with one job, the others go on."""
        ended = Ended(job=run.job.name, ending="worker_lost", problem="it was never heard of")
        try:
            ended = await self._events(run, ended)
            await self._conclude(run, ended)
        except Exception as failure:
            log.error("job_failed", job=run.job.name, exc_info=failure)
            with contextlib.suppress(Exception):
                await run.handle.cancel()
                await self._conclude(run, ended.model_copy(update={"ending": "worker_lost"}))
        finally:
            self._runs.pop(run.job.name, None)
            run.watch.report = None
            self._arrived.set()

    async def _events(self, run: _Run, ended: Ended) -> Ended:
        report = run.watch.report
        assert report is not None
        async with contextlib.aclosing(run.handle.events()) as events:
            async for message, payload in events:
                if isinstance(message, Started):
                    run.started, run.wall_seconds = time.time(), message.wall_seconds
                    run.overdue_at = time.monotonic() + self._most_seconds(run)
                    run.watch.job = replace(run.job, started_at=run.started, wall_seconds=message.wall_seconds)
                    run.watch.tell_started(message.wall_seconds, run.started)
                elif isinstance(message, Changed):
                    for stage, changed in await report.take(payload):
                        run.watch.append("stage", stage_data(stage, changed))
                elif isinstance(message, Log):
                    run.watch.append("log", {"text": message.text})
                else:
                    ended = message
        return ended

    async def _conclude(self, run: _Run, ended: Ended) -> None:
        job = run.job
        if run.is_cancelled:
            ended = ended.model_copy(update={"ending": "cancelled"})
        device = "cuda" if job.uses_gpu else "cpu"
        self._metrics.observe_end(device, ended)
        is_lost = ended.ending == "worker_lost"
        if run.is_lost:
            return
        if self._is_stopping and not run.is_cancelled and ended.ending in ("cancelled", "worker_lost"):
            await self._table.give_back(job, has_run=True, counts=False)
            return
        if ended.problem == NO_SLOT:
            # Another web was quicker. That is no failure of the job's, and a slot is free again some time later.
            await asyncio.sleep(LOOK_SECONDS)
            await self._persist(self._table.give_back, job, False, False)
            return
        if is_lost and job.tries < self._settings.attempts:
            log.warning("job_lost", job=job.name, problem=ended.problem)
            await self._persist(self._table.give_back, job, True, True)
            run.watch.job = await self._table.get(job.id) or job
            return
        report = run.watch.report
        assert report is not None
        last_event = run.watch.log.next_number()
        finished, stages = await report.finish(ended, run.wall_seconds, last_event, self._build)
        if is_lost and job.tries > 1:
            finished = await asyncio.to_thread(self._unrun, job, "lost", run.watch)
        await self._store(job, finished, run.watch)
        self._metrics.job_seconds.labels(device, finished.status).observe(ended.wall_seconds)
        for stage in stages:
            # The names are the snippet's word, and each makes a series of its own.
            name = stage.name if stage.name in get_args(StageName) else "other"
            self._metrics.stage_seconds.labels(name, device).observe(max(0.0, stage.ms / 1000))
        self.seconds_a_job += 0.2 * (ended.wall_seconds - self.seconds_a_job)
        log.info("job_done", job=job.name, status=finished.status, ending=ended.ending, wall_seconds=ended.wall_seconds)

    async def _store(self, job: Job, finished: Finished, watch: Watch) -> None:
        stored = await self._persist(self._table.finish, job, finished)
        if stored is None:
            log.warning("job_overtaken", job=job.name)
            return
        self._reports.forget(job.id)
        if stored.is_reusable:
            self._reports.remember(stored)
        self._watches.end(watch, stored)

    async def _persist(self, work: Any, *arguments: Any) -> Any:
        """Does `work` as soon as the database can be written: what has run is not run again for that."""
        failures = 0
        while True:
            try:
                return await work(*arguments)
            except DatabaseUnavailable as failure:
                log.warning("database_unavailable", problem=str(failure))
                await asyncio.sleep(_STORE_PAUSES_SECONDS[min(failures, len(_STORE_PAUSES_SECONDS) - 1)])
                failures += 1

    async def _end_unrun(self, job: Job, why: Unrun) -> None:
        watch = self._watches.of(job)
        await self._store(job, await asyncio.to_thread(self._unrun, job, why, watch), watch)

    def _unrun(self, job: Job, why: Unrun, watch: Watch) -> Finished:
        most_bytes = self._settings.report_mib * MIB
        return unrun_report(job, why, job.tries, watch.log.next_number(), self._build, most_bytes)

    async def _renew(self) -> None:
        await asyncio.sleep(min(self._settings.lease_seconds / 4, LOOK_SECONDS))
        lease_seconds = self._settings.lease_seconds
        is_due = time.monotonic() - self._renewed_at > lease_seconds / 4
        runs = dict(self._runs)
        for run in runs.values():
            if run.started is not None and not run.is_begun:
                deadline = run.started + self._most_seconds(run)
                await self._table.begin(run.job, run.started, run.wall_seconds, deadline)
                run.is_begun = True
        ours = [run.job for run in runs.values()]
        lost, cancelled = await self._table.renew(ours, lease_seconds if is_due else None)
        if is_due:
            self._renewed_at = time.monotonic()
        for name, run in runs.items():
            if self._runs.get(name) is not run:
                continue  # it ended meanwhile
            run.is_lost = run.is_lost or name in lost
            run.is_cancelled = run.is_cancelled or name in cancelled
            is_overdue = run.overdue_at is not None and time.monotonic() > run.overdue_at
            if run.is_lost or run.is_cancelled or is_overdue:
                await run.handle.cancel()

    def _most_seconds(self, run: _Run) -> float:
        """Web's own limit, for a worker that keeps none: every neighbour may hold the timing lease once."""
        slots = sum(device.slots for device in self._executor.devices())
        return (slots + 1) * run.wall_seconds + 60.0

    async def _look(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._arrived.wait()
                await asyncio.sleep(0.05)
        since, self._looked_at = self._looked_at - 10 * LOOK_SECONDS, time.time()
        before, self._changing = self._changing, set(await self._table.changed_since(since))
        # What had not ended at the last look may have ended long ago by the clock of another web.
        for id in before | self._changing:
            self._reports.forget(id)
        await self._tell()
        every = self._settings.unwanted_seconds / 5
        if time.monotonic() - self._told_wanted_at > every:
            await self._table.tell_wanted(self._watches.wanted(2 * every))
            self._told_wanted_at = time.monotonic()
        # The table goes by the clock, which may have been set: who waits here is known better.
        wanted = set(self._watches.wanted(self._settings.unwanted_seconds))
        for job in await self._table.to_end(self._settings.unwanted_seconds, self._build):
            is_outdated = job.build != self._build
            if job.id in wanted and not job.is_cancelled and not is_outdated:
                continue
            await self._end_unrun(job, "cancelled" if job.is_cancelled else "outdated" if is_outdated else "dropped")
        running = {run.job.id for run in self._runs.values()}
        for job in await self._table.expired(self._settings.attempts, running):
            await self._end_unrun(job, "cancelled" if job.is_cancelled else "lost")
        self._watches.forget_idle()

    async def _tell(self) -> None:
        """Tells followers what the table says of jobs that do not run here."""
        order = {id: place for place, id in enumerate(await self._table.queue())}
        self.waiting = len(order)
        elsewhere = [watch for watch in self._watches if watch.report is None and not watch.log.is_over]
        if not elsewhere:
            return
        active = await self._table.active([watch.job.id for watch in elsewhere])
        for watch in elsewhere:
            if watch.report is not None or watch.log.is_over:
                continue  # it was taken, or ended, while we asked
            job = active.get(watch.job.id)
            if job is None:
                self._watches.end(watch, await self._reports.get(watch.job.id))
                continue
            watch.job = job
            if job.state == "queued":
                watch.tell_position(order.get(job.id, 0))
            elif job.started_at is not None and job.wall_seconds is not None:
                watch.tell_started(job.wall_seconds, job.started_at)
