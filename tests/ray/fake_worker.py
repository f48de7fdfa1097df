"""A worker that speaks the wire and runs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from server.wire.messages import Changed, Ended, Hello, Started, State, next_for_worker, send
from server.wire.profile import build_id, detected_profile

PAYLOAD_BYTES = 256 * 1024


class FakeWorker:
    """It takes one job on each connection, and sends `payloads` for it as fast as it is let. `may_end` ends the job."""

    def __init__(self, payloads: int) -> None:
        self.payloads = payloads
        self.sent = 0
        self.may_end = asyncio.Event()
        self._is_over = asyncio.Event()

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Until the block ends, and with it every connection."""
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            self._is_over.set()
            server.close()

    def payload(self, number: int) -> bytes:
        return number.to_bytes(4, "big") * (PAYLOAD_BYTES // 4)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over = asyncio.create_task(self._is_over.wait())
        talk = asyncio.create_task(self._talk(reader, writer))
        await asyncio.wait((over, talk), return_when=asyncio.FIRST_COMPLETED)
        for task in (over, talk):
            task.cancel()
        writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await send(
                writer, Hello(build=build_id(), profile=detected_profile(), tier="trusted", isolation=(), slots=1)
            )
            await send(writer, State(ready=True))
            await next_for_worker(reader)
            run = await next_for_worker(reader)
            if run is None or run.kind != "run":
                return
            await send(writer, Started(job=run.job, wall_seconds=60))
            for number in range(self.payloads):
                await send(writer, Changed(job=run.job), self.payload(number))
                self.sent += 1
            await self.may_end.wait()
            await send(writer, Ended(job=run.job, ending="exited", exit_code=0))
            await self._is_over.wait()
