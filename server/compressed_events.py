"""Event streams, compressed as they are sent.

The compression that serves whole answers would hold events back until it has enough of them. Here each piece ends on a
sync flush (RFC 1951, 3.2.4), so that a reader has it as soon as it was sent, and what an event repeats of those before
it costs next to nothing.
"""

from __future__ import annotations

import asyncio
import zlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.negotiation import takes_encoding

_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6
_LARGE = 64 * 1024
"""Bytes that are not compressed between two other requests, but in a thread."""


class CompressedEvents:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not takes_encoding("gzip", Headers(scope=scope).get("accept-encoding")):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Compressed(send).send)


class _Compressed:
    """The way of one answer, which is left as it is unless it is a stream of events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._stream: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/event-stream") and "content-encoding" not in headers:
                self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
                headers["Content-Encoding"] = "gzip"
                headers.add_vary_header("Accept-Encoding")
        elif message["type"] == "http.response.body" and self._stream is not None:
            message = {**message, "body": await self._piece(message.get("body", b""), message.get("more_body", False))}
        await self._send(message)

    async def _piece(self, body: bytes, more_follows: bool) -> bytes:
        if len(body) > _LARGE:
            return await asyncio.to_thread(self._compress, body, more_follows)
        return self._compress(body, more_follows)

    def _compress(self, body: bytes, more_follows: bool) -> bytes:
        assert self._stream is not None
        return self._stream.compress(body) + self._stream.flush(zlib.Z_SYNC_FLUSH if more_follows else zlib.Z_FINISH)
