"""What one connection may ask of web before a request is whole: so much time, and so many bytes; and how many
connections one address may have. And how long an answer may wait to be taken.

uvicorn waits for ever for the rest of a request, and keeps whatever of its headers has come. So a few thousand
connections that say nothing would take every descriptor, and one that never ends its headers all memory. Its own bound
on connections is one for all clients together: whoever fills it keeps the others out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Any

import structlog
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.clients import address_name

log = structlog.get_logger(__name__)

REQUEST_SECONDS = 30.0
"""From the connection, or from a request's first byte, until all of the request is there."""
ANSWER_SECONDS = 60.0
LEAST_ANSWER_BYTES = 1024 * 1024
"""So much of an answer, or all that waits of it, must be taken in that time: what waits is held in memory."""
MOST_REQUEST_BYTES = 4 * 1024 * 1024
"""Of headers and body, whatever they are wrapped in: twice what a body may have, and more headers than anybody has."""


_REFUSAL = "Your address has as many connections open as it may: use them again, or close some."
_REFUSED = (
    "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 5\r\n"
    f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(_REFUSAL)}\r\n\r\n{_REFUSAL}"
).encode()


class Connections:
    """The connections of each address: `most` at once, or any number where that is 0. Those of this machine are not
    counted, nor those of `proxies`, which stand for many clients and count for themselves."""

    def __init__(self, most: int = 0, proxies: Collection[str] = ()) -> None:
        self._most = most
        # Networks may be named there too; uvicorn reads them for its own purpose.
        self._proxies = ProxyHeadersMiddleware(_nothing, list(proxies)).trusted_hosts
        self._open: Counter[str] = Counter()

    def counted(self, transport: asyncio.Transport) -> str | None:
        """What a connection is counted by; None where it is not."""
        peer = transport.get_extra_info("peername")
        host = peer[0] if isinstance(peer, tuple) else ""
        name, is_local = address_name(host)
        return None if is_local or not self._most or host in self._proxies else name

    def take(self, name: str) -> bool:
        """Whether there may be one more; then it is to be given back."""
        if self._open[name] >= self._most:
            return False
        self._open[name] += 1
        return True

    def give_back(self, name: str) -> None:
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]


async def _nothing(*_: object) -> None:
    """Stands for an application."""


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol with these bounds. A connection that oversteps one is closed."""

    def __init__(self, *arguments: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._connections = connections
        self._counted: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._bytes = 0
        self._reader_timer: asyncio.TimerHandle | None = None

    @classmethod
    def within(cls, connections: Connections) -> Any:
        """What uvicorn takes as its setting `http`."""
        return partial(cls, connections=connections)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        counted = self._connections.counted(transport)
        if counted is not None and not self._connections.take(counted):
            transport.write(_REFUSED)
            self._close("its address has too many connections")
            return
        self._counted = counted
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        if self._counted is not None:
            self._connections.give_back(self._counted)
            self._counted = None
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

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def _watch(self, waiting_bytes: int) -> None:
        self._stop_watching()
        self._reader_timer = self.loop.call_later(ANSWER_SECONDS, self._look, waiting_bytes)

    def _look(self, waited_bytes: int) -> None:
        """Gives up a reader who has not taken enough since so many bytes waited for it."""
        waiting_bytes = self.transport.get_write_buffer_size()
        if waiting_bytes > waited_bytes - LEAST_ANSWER_BYTES:
            log.debug("answer_given_up", waiting_bytes=waiting_bytes)
            self.transport.abort()
        else:
            self._watch(waiting_bytes)

    def _stop_watching(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

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
