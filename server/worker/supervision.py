"""Tasks that run for as long as the worker does: one that fails is logged and begins again, later each time. And the
way in which they wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0


class Backoff:
    """The pause between two tries: none after a success, then half a second, doubled up to half a minute."""

    def __init__(self) -> None:
        self._failures = 0

    async def pause(self, after_success: bool) -> None:
        self._failures = 0 if after_success else self._failures + 1
        if self._failures:
            await asyncio.sleep(min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(self._failures - 1, 10)))


async def supervised(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Runs `work` for ever. What it raises is a defect of ours: it is logged, and the work begins anew."""
    backoff = Backoff()
    while True:
        try:
            await work()
            log.error("task_ended", task=name)
        except Exception:  # noqa: BLE001 - nothing may end a task that everything else relies on
            log.exception("task_failed", task=name)
        await backoff.pause(after_success=False)


class Changes:
    """Something changes now and then, and others wait until it is as they need it. All in one thread."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def wait_for(self, is_so: Callable[[], bool], timeout_seconds: float | None = None) -> None:
        """Returns once it is so: when it is called, or after a change. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout_seconds):
            while not is_so():
                waiting = asyncio.get_running_loop().create_future()
                self._waiting.add(waiting)
                try:
                    await waiting
                finally:
                    self._waiting.discard(waiting)
