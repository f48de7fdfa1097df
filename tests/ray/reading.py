"""What tests read of an executor and of its jobs, as web does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from server.executors.protocol import Executor, Handle
from server.wire.messages import Changed, Ended
from tests.ray.cluster import WAIT_SECONDS


async def until(executor: Executor, is_so: Callable[[], object]) -> None:
    """Waits as web does: until `devices` changes, and it is so."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            changed = asyncio.create_task(executor.changed())
            try:
                if is_so():
                    return
                await changed
            finally:
                changed.cancel()


class Job:
    """A job that was submitted, and which device has it."""

    def __init__(self, device: str, handle: Handle) -> None:
        self.device = device
        self.handle = handle
        self._events = handle.events()

    async def next(self, kind: type) -> Any:
        """Reads up to the next message of that kind."""
        async with asyncio.timeout(WAIT_SECONDS):
            async for message, _ in self._events:
                if isinstance(message, kind):
                    return message
        raise AssertionError(f"the job ended without {kind.__name__}")

    async def end(self) -> tuple[list[bytes], Ended]:
        """Reads the rest: all payloads, and the end."""
        payloads = []
        async with asyncio.timeout(WAIT_SECONDS):
            async for message, payload in self._events:
                if isinstance(message, Changed):
                    payloads.append(payload)
                elif isinstance(message, Ended):
                    return payloads, message
        raise AssertionError("the job has no end")
