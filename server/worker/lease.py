"""The timing lease: who may time on the device now. The worker holds it, outside of all jobs.

A lease is granted in the order in which it was asked for. Whoever has it and dies or is ended gives it back by that:
the worker sees to it. Waiting for it is told apart from running, so that it costs a job nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable


class TimingLease:
    """One for each device."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @property
    def is_held(self) -> bool:
        return self._lock.locked()

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """For the worker's own work that would disturb what is timed."""
        async with self._lock:
            yield

    def holder(self, grant: Callable[[], None]) -> LeaseHolder:
        """One job's part in it; `grant` tells the job that it has the lease."""
        return LeaseHolder(self._lock, grant)


class LeaseHolder:
    """What one job has of the lease. A job that asks twice, or returns what it has not, changes nothing."""

    def __init__(self, lock: asyncio.Lock, grant: Callable[[], None]) -> None:
        self._lock = lock
        self._grant = grant
        self._waiting: asyncio.Task[None] | None = None
        self._holds = False
        self._waited = 0.0
        self._waits_since: float | None = None

    @property
    def waited_seconds(self) -> float:
        """Until now, the present wait included."""
        present = 0.0 if self._waits_since is None else time.monotonic() - self._waits_since
        return self._waited + present

    @property
    def holds(self) -> bool:
        return self._holds

    def ask(self) -> None:
        if self._holds or self._waiting is not None:
            return
        self._waits_since = time.monotonic()
        self._waiting = asyncio.create_task(self._acquire(), name="timing lease")

    def give_back(self) -> None:
        if self._holds:
            self._holds = False
            self._lock.release()

    async def close(self) -> None:
        """The job is over: it neither holds the lease nor waits for it any more."""
        waiting = self._waiting
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
        self.give_back()

    async def _acquire(self) -> None:
        try:
            await self._lock.acquire()
            self._holds = True
        finally:
            self._waited = self.waited_seconds
            self._waits_since = None
            self._waiting = None
        self._grant()
