"""Asking for an exploration and finding it again: the database, the queue and what runs, behind one door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from compiler.report import REPORT_VERSION, Observed
from server import readings
from server.clients import Client
from server.database.engine import DatabaseUnavailable
from server.database.jobs import Job, JobTable
from server.database.new_jobs import Limits, QueueFull, Wanted
from server.database.reports import Child, Reports, Stored
from server.derived import derived
from server.dispatcher import Dispatcher
from server.events import Event, EventId
from server.identity import exploration_id
from server.metrics import Metrics
from server.observed import observed_running
from server.problems import Problem
from server.profiles import Profiles
from server.readings import Unread
from server.requests import ExplorationRequest, said_of_fault
from server.running import empty_report
from server.settings import WebSettings
from server.watched import Watch, Watches

__all__ = ["Exploration", "Explorations", "QueueFull"]

_CANCEL_SECONDS = 10.0


@dataclass(frozen=True)
class Exploration:
    """An exploration as it stands. `stored` is there once it is done; until then `so_far` is its report as JSON.
    `based_on` is the one that it is based on."""

    id: str
    status: str
    based_on: str | None
    stored: Stored | None
    so_far: bytes = b""

    @property
    def is_done(self) -> bool:
        return self.stored is not None

    @property
    def is_reusable(self) -> bool:
        return self.stored is not None and self.stored.is_reusable

    @property
    def unread(self) -> Unread:
        if self.stored is not None:
            return self.stored.unread
        return Unread(self.id, REPORT_VERSION, len(self.so_far), self.so_far, is_gzipped=False)


class Explorations:
    """What is asked of explorations: answered from the store, or by a job, one for all who ask for the same."""

    def __init__(
        self,
        settings: WebSettings,
        table: JobTable,
        reports: Reports,
        watches: Watches,
        dispatcher: Dispatcher,
        profiles: Profiles,
        build: str,
        metrics: Metrics,
    ) -> None:
        self._limits = Limits(settings.queue_limit, settings.client_queue_limit)
        self._table = table
        self._reports = reports
        self.watches = watches
        self._dispatcher = dispatcher
        self._profiles = profiles
        self._build = build
        self._metrics = metrics

    async def ask(
        self,
        request: ExplorationRequest,
        client: Client,
        wait_seconds: float,
        admit: Callable[[], None] = lambda: None,
    ) -> Exploration:
        """The stored report, or a job's, waiting up to `wait_seconds` for it to finish.

        `admit` is called before a new job is made, and raises a `Problem` where there may be none. A job is written
        down for good when this returns. Raises `QueueFull`, and a `Problem` for a wrong request.
        """
        options = request.options()
        if request.based_on is not None:
            await self._check_parent(request.based_on, request.source)
        profile = self._profiles.pick(options.device)
        id = exploration_id(request.source, options, profile, self._build, request.based_on)
        is_refresh = request.cache == "refresh"
        stored = None if is_refresh else self._reports.cached(id)
        if stored is None:
            wanted = Wanted(id, client.key, request.source, options, request.based_on, profile, self._build)
            found = await self._put(wanted, replace(self._limits, at_once=client.jobs_at_once), is_refresh, admit)
            if isinstance(found, Watch):
                await self._wait(found, wait_seconds)
                return await self.find(id)
            stored = found
        self._metrics.served_from_store.inc()
        return _done(stored)

    async def _put(self, wanted: Wanted, limits: Limits, is_refresh: bool, admit: Callable[[], None]) -> Stored | Watch:
        try:
            return await self._dispatcher.put(wanted, limits, is_refresh, admit)
        except QueueFull:
            self._metrics.refused.inc()
            raise
        except DatabaseUnavailable:
            # It may only be locked, and still say what it has.
            stored = None if is_refresh else await self._reports.get(wanted.id)
            if stored is None or not stored.is_reusable:
                raise
            return stored

    def cached(self, id: str) -> Stored | None:
        """The report where it is in memory and cannot change."""
        return self._reports.cached(id)

    async def find(self, id: str) -> Exploration:
        """The exploration with this id; a `Problem` when there is none."""
        stored = self._reports.cached(id)
        if stored is not None:
            return _done(stored)
        watch = self.watches.find(id)
        if watch is not None and watch.report is not None:
            watch.asked()
            so_far = await asyncio.to_thread(watch.report.body, _seen(watch.job))
            return Exploration(id, "running", watch.job.based_on, None, so_far)
        job = (await self._table.active([id])).get(id)
        if job is not None:
            self.watches.of(job).asked()
            return Exploration(id, "running", job.based_on, None, await asyncio.to_thread(_empty_body, job))
        stored = await self._reports.get(id)
        if stored is None:
            raise Problem(
                404,
                f"There is no exploration {id} here. It may have been made by another server or another version; "
                "post its snippet to /api/v1/explorations to run it here.",
            )
        return _done(stored)

    async def unread(self, id: str) -> Unread:
        """The report so far; a `Problem` where there is none."""
        return (await self.find(id)).unread

    async def children(self, id: str) -> list[Child]:
        """The explorations that are based on this one and done, the newest first."""
        await self.find(id)
        return await self._reports.children(id)

    async def sides(self, id: str, other: str | None) -> tuple[Unread, Unread]:
        """What the exploration `id` is compared with, which is `other`, or the one that it is based on; and itself."""
        after = await self.find(id)
        before_id = other or after.based_on
        if before_id is None:
            raise Problem(
                422, f"Exploration {id} is based on no other one. Name one to compare it with, as in ?with=ID."
            )
        return await self.unread(before_id), after.unread

    async def kernel_request(self, id: str, name: str, graph: str | None, **wanted: Any) -> ExplorationRequest:
        """What has that kernel of the exploration compiled down to machine code (see `kernel_to_compile`); a `Problem`
        where there is no such kernel, or nothing of it to compile."""
        found = await derived(readings.kernel_to_compile, await self.unread(id), name, graph, **wanted)
        try:
            return ExplorationRequest(source=found[0], machine_code=found[1])
        except ValidationError as invalid:
            raise Problem(
                409, f"The kernel {name[:200]} cannot be sent: {said_of_fault(invalid.errors()[0])}."
            ) from None

    async def _check_parent(self, id: str, source: str) -> None:
        try:
            parent = await derived(readings.source, await self.unread(id))
        except Problem as missing:
            raise Problem(422, f"The request is not valid at body.based_on: {missing}") from None
        if parent != source:
            raise Problem(
                422,
                f"The request is not valid at body.based_on: exploration {id} is of another source. "
                "Send its source, or leave based_on out.",
            )

    async def cancel(self, id: str, follower: str | None = None) -> Exploration:
        """Cancels it where it waits or runs; one that is done stays as it is. For `follower`, only where nobody else
        follows it at this web."""
        job = (await self._table.active([id])).get(id)
        if job is not None:
            watch = self.watches.of(job)
            if follower is not None and watch.has_others(follower):
                return await self.find(id)
            await self._dispatcher.cancel(id)
            await self._wait(watch, _CANCEL_SECONDS)
        return await self.find(id)

    async def events(self, id: str, after: EventId | None, follower: str | None = None) -> AsyncIterator[Event]:
        """Events past and to come, after that one, for `follower`. The exploration must exist."""
        watch = self.watches.find(id)
        if watch is None:
            job = (await self._table.active([id])).get(id)
            watch = self.watches.of(job) if job is not None else None
            self._dispatcher.arrived()
        if watch is not None:
            async for event in watch.follow(after, follower):
                yield event
            return
        stored = (await self.find(id)).stored
        if stored is None:
            return  # asked for again at this moment: the reader comes back
        for event in await derived(readings.events, stored.unread, stored.attempt, stored.last_event, after):
            yield event

    async def _wait(self, watch: Watch, seconds: float) -> None:
        if seconds <= 0:
            return
        with watch.waiting():
            try:
                async with asyncio.timeout(seconds):
                    await watch.finished.wait()
            except TimeoutError:
                pass


def _done(stored: Stored) -> Exploration:
    return Exploration(stored.id, stored.status, stored.based_on, stored)


def _empty_body(job: Job) -> bytes:
    return empty_report(job).model_copy(update={"observed": _seen(job)}).model_dump_json().encode()


def _seen(job: Job) -> Observed | None:
    """What the service sees of a job that runs; None of one that waits."""
    if job.started_at is None or job.wall_seconds is None:
        return None
    return observed_running(job.attempt, job.started_at, job.wall_seconds)
