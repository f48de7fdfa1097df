"""How the worker's tasks wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


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
