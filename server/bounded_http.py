"""What one connection may ask of web before a request is whole: so much time, and so many bytes.

uvicorn waits for ever for the rest of a request, and keeps whatever of its headers has come. So a few thousand
connections that say nothing would take every descriptor, and one that never ends its headers all memory.
"""

from __future__ import annotations

import asyncio

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = structlog.get_logger(__name__)

REQUEST_SECONDS = 30.0
"""From the connection, or from a request's first byte, until all of the request is there."""
MOST_REQUEST_BYTES = 4 * 1024 * 1024
"""Of headers and body, whatever they are wrapped in: twice what a body may have, and more headers than anybody has."""


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol with these two bounds. A connection that oversteps one is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._bytes = 0
            self._wait()
        self._bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._bytes > MOST_REQUEST_BYTES:
            self._close("it is too large")

    def on_message_complete(self) -> None:
        self._stop_waiting()
        super().on_message_complete()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._close, "it takes too long")

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self, reason: str) -> None:
        self._stop_waiting()
        log.debug("request_given_up", because=reason)
        self.transport.close()
