"""What this web holds in memory of explorations under way: their events, who follows them, and the report so far of
those that run here. All of it can be lost: what must last stands in the database."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from server.database.jobs import Job
from server.database.reports import Stored
from server.events import Event, EventId, EventLog, EventName
from server.running import RunningReport

_IDLE_SECONDS = 60.0
"""How long a job that nobody follows is kept in mind here; the database knows it for longer."""


@dataclass(eq=False)
class Watch:
    """One exploration that waits or runs, here or at another web. `report` is there while it runs here."""

    job: Job
    log: EventLog
    report: RunningReport | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    followers: Counter[str | None] = field(default_factory=Counter)
    """How many wait for it, by the name that each of them goes by; None for those without one."""
    asked_at: float = field(default_factory=time.monotonic)

    def append(self, name: EventName, data: dict[str, Any] | str) -> None:
        self.log.append(self.job.attempt, name, data)

    def tell_position(self, position: int) -> None:
        """Tells how many are before it, where that has changed."""
        last = self.log.last("queued")
        data = f'{{"position":{position}}}'
        if last is None or last.data != data or last.id.attempt != self.job.attempt:
            self.append("queued", data)

    def tell_started(self, wall_seconds: float, started_at: float) -> None:
        """Tells that the snippet has begun, once an attempt: since when, by the service's clock, and for how long."""
        last = self.log.last("started")
        if last is None or last.id.attempt != self.job.attempt:
            self.append("started", {"wall_seconds": wall_seconds, "started_at": round(started_at, 3)})

    def tell_done(self, stored: Stored | None) -> None:
        """Tells of the end, by the number that it will have for whoever reads later."""
        if not self.log.is_over and stored is not None:
            self.log.append(stored.attempt, "done", {"status": stored.status}, stored.last_event)
        elif not self.log.is_over:
            self.append("done", {"status": "dropped"})
        self.finished.set()

    @contextmanager
    def waiting(self, follower: str | None = None) -> Iterator[None]:
        """While the block runs, somebody waits for it."""
        self.followers[follower] += 1
        try:
            yield
        finally:
            self.followers[follower] -= 1
            self.followers += Counter()  # without those that are none
            self.asked_at = time.monotonic()

    def has_others(self, follower: str) -> bool:
        """Whether anybody but that one waits for it."""
        return any(name != follower for name in self.followers)

    def asked(self) -> None:
        self.asked_at = time.monotonic()

    async def follow(self, after: EventId | None, follower: str | None = None) -> AsyncIterator[Event]:
        with self.waiting(follower):
            async for event in self.log.follow(after):
                yield event


class Watches:
    """Those of one web, by the exploration's id."""

    def __init__(self) -> None:
        self._of: dict[str, Watch] = {}

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self._of.values()))

    def find(self, id: str) -> Watch | None:
        return self._of.get(id)

    def of(self, job: Job) -> Watch:
        """The watch of this job, from now on where there was none."""
        found = self._of.get(job.id)
        if found is None or found.log.is_over:
            found = self._of[job.id] = Watch(job, EventLog(job.queued_at))
        elif found.report is None and (job.attempt, job.state) >= (found.job.attempt, found.job.state):
            found.job = job
        return found

    def end(self, watch: Watch, stored: Stored | None) -> None:
        """Tells its followers that it is over, and forgets it: they hold what they still need. `stored` is what it
        became; None where that is gone already."""
        watch.report = None
        watch.tell_done(stored)
        if self._of.get(watch.job.id) is watch:
            del self._of[watch.job.id]

    def wanted(self, seconds: float) -> list[str]:
        """Ids of those that somebody follows now, or has asked for so recently."""
        since = time.monotonic() - seconds
        return [watch.job.id for watch in self if watch.followers or watch.asked_at > since]

    def forget_idle(self) -> None:
        """Those that nobody follows, and that do not run here."""
        since = time.monotonic() - _IDLE_SECONDS
        for watch in self:
            if watch.report is None and not watch.followers and watch.asked_at < since:
                del self._of[watch.job.id]
