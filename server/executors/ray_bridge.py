"""The end of a tunnel at a worker's machine: a Ray actor that passes bytes between Ray and the worker's socket.

It understands nothing of what it passes on. Only `bytes` and `str` cross Ray, which it serializes without pickle. Its
class is sent by value, so that a node's Ray needs nothing of ours: this module imports the standard library alone.
"""

from __future__ import annotations

import asyncio
import contextlib

CHUNK_BYTES = 64 * 1024
"""Of one call. Ray sends what is below 100 KiB within the call, and keeps larger things in its store of objects."""


class Bridge:
    """One connection to a worker, for one caller that asks for one chunk at a time in each direction."""

    def __init__(self) -> None:
        self._writer: asyncio.StreamWriter | None = None

    async def open(self, path: str) -> str:
        """Connects to the worker that listens at `path`, in the place of an earlier connection that was not used.

        Returns why that is not possible, as a clause, or "".
        """
        if self._writer is not None:
            self._writer.close()
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(path)
        except OSError as failure:
            return f"it cannot be reached at {path}: {failure.strerror or failure}"
        return ""

    async def receive(self) -> bytes:
        """What the worker says next, as soon as there is something; nothing once the connection is over."""
        try:
            return await self._reader.read(CHUNK_BYTES)
        except OSError:
            return b""

    async def send(self, data: bytes) -> None:
        """Passes `data` on to the worker, and waits while it is slower. `receive` tells when the connection is over."""
        assert self._writer is not None
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()
