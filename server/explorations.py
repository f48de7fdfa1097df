"""Asking for an exploration and finding it again: the store and the queue behind one door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from compiler.comparison import Comparison, compare
from compiler.report import Report
from compiler.why import Answer, UnknownNode, why
from server.events import Event, replay
from server.identity import exploration_id
from server.jobs import Job, Jobs, QueueFull
from server.metrics import Metrics
from server.problems import Problem
from server.requests import ExplorationRequest
from server.store import Child, Store
from server.worker_process import WorkerProcess, WorkerUnavailable

_RETRY_SECONDS = "10"


@dataclass(frozen=True)
class Exploration:
    """An exploration as it stands: its report as JSON, and whether that may still change."""

    id: str
    status: str
    body: bytes
    is_reusable: bool

    @property
    def is_done(self) -> bool:
        return self.status != "running"


class Explorations:
    """What is asked of explorations: answered from the store, or by a job, one for all who ask for the same."""

    def __init__(self, store: Store, jobs: Jobs, worker: WorkerProcess, metrics: Metrics) -> None:
        self._store = store
        self._jobs = jobs
        self._worker = worker
        self._metrics = metrics

    async def ask(
        self, request: ExplorationRequest, wait_seconds: float, admit: Callable[[], None] = lambda: None
    ) -> Exploration:
        """The stored report, or a new job's, waiting up to `wait_seconds` for it to finish.

        `admit` is called before a new job is made, and raises a `Problem` where there may be none.
        """
        try:
            hello = await self._worker.ready()
        except WorkerUnavailable as unavailable:
            raise Problem(
                503, f"{unavailable} Try again in a moment.", headers={"Retry-After": _RETRY_SECONDS}
            ) from None
        options = request.options()
        if request.based_on is not None:
            await self._check_parent(request.based_on, request.source)
        id = exploration_id(request.source, options, hello.identity, request.based_on)
        job = self._jobs.active(id)
        if job is None and request.cache == "use":
            stored = await self._store.get(id)
            if stored is not None and stored.is_reusable:
                self._metrics.served_from_store.inc()
                return Exploration(id, stored.status, stored.body, True)
            # Looking in the store took a moment in which another request may have asked for the same.
            job = self._jobs.active(id)
        if job is None:
            admit()
            try:
                job = await self._jobs.submit(id, request.source, options, hello.identity, request.based_on)
            except QueueFull:
                raise Problem(
                    429,
                    f"{self._jobs.waiting} explorations are waiting already, which is as many as may. "
                    f"Try again in {_RETRY_SECONDS} seconds.",
                    headers={"Retry-After": _RETRY_SECONDS},
                ) from None
        if wait_seconds > 0:
            try:
                async with asyncio.timeout(wait_seconds):
                    await job.finished.wait()
            except TimeoutError:
                pass
        return await self._of_job(job)

    async def find(self, id: str) -> Exploration:
        """The exploration with this id; a `Problem` when there is none."""
        job = self._jobs.find(id)
        if job is not None:
            return await self._of_job(job)
        stored = await self._store.get(id)
        if stored is None:
            raise Problem(
                404,
                f"There is no exploration {id} here. It may have been made by another server or another version; "
                "post its snippet to /api/v1/explorations to run it here.",
            )
        return Exploration(id, stored.status, stored.body, stored.is_reusable)

    async def report(self, id: str) -> Report:
        exploration = await self.find(id)
        return await asyncio.to_thread(Report.model_validate_json, exploration.body)

    async def why(self, id: str, a: str, b: str) -> list[Answer]:
        """Why the nodes `a` and `b` are, or are not, in one kernel; a `Problem` for a name that no graph has."""
        report = await self.report(id)
        try:
            return await asyncio.to_thread(why, report, a, b)
        except UnknownNode as unknown:
            raise Problem(404, f"{unknown} See graphs[].loops and graphs[].aten of exploration {id}.") from None

    async def children(self, id: str) -> list[Child]:
        """The explorations that are based on this one and done, the newest first."""
        await self.find(id)
        return await self._store.children(id)

    async def comparison(self, id: str, other: str | None) -> Comparison:
        """The exploration `id` beside `other`, or beside the one that it is based on."""
        after = await self.report(id)
        before_id = other or after.based_on
        if before_id is None:
            raise Problem(
                422, f"Exploration {id} is based on no other one: name the one to compare it with, as in ?with=ID."
            )
        before = await self.report(before_id)
        if before.source != after.source:
            raise Problem(422, f"Explorations {before_id} and {id} are of different sources, so nothing is comparable.")
        return await asyncio.to_thread(compare, before, after)

    async def _check_parent(self, id: str, source: str) -> None:
        try:
            parent = await self.report(id)
        except Problem as missing:
            raise Problem(422, f"The request is not valid at body.based_on: {missing}") from None
        if parent.source != source:
            raise Problem(
                422,
                f"The request is not valid at body.based_on: exploration {id} is of another source. "
                "Send its source, or leave based_on out.",
            )

    async def cancel(self, id: str) -> Exploration:
        """Cancels it where it waits or runs; one that is done stays as it is."""
        job = self._jobs.active(id)
        if job is None:
            return await self.find(id)
        await self._jobs.cancel(job)
        try:
            async with asyncio.timeout(10.0):
                await job.finished.wait()
        except TimeoutError:
            pass
        return await self._of_job(job)

    async def events(self, id: str, after: int) -> AsyncIterator[Event]:
        """Events past and to come, after the one numbered `after`. The exploration must exist."""
        job = self._jobs.find(id)
        if job is not None:
            async for event in job.events.follow(after):
                yield event
            return
        exploration = await self.find(id)
        report = await asyncio.to_thread(Report.model_validate_json, exploration.body)
        for event in replay(report, exploration.body.decode(), after):
            yield event

    async def _of_job(self, job: Job) -> Exploration:
        if job.stored is not None:
            return Exploration(job.id, job.stored.status, job.stored.body, job.stored.is_reusable)
        # Until the job has ended its report says "running", whatever the snippet's process claims.
        so_far = job.report.model_copy(update={"status": "running"})
        return Exploration(job.id, "running", (await asyncio.to_thread(so_far.model_dump_json)).encode(), False)
