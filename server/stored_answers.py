"""Answers with stored reports. Nothing is compressed or hashed for them: body, ETag and length were made when the
report was stored.

Most requests are for reports that are in memory. `StoredAnswers` gives these before the routes are looked at: what
FastAPI does for a request takes ten times as long as the answer itself. It stands behind every check that concerns all
requests, and it answers only what the route would answer in the same way.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.database.compressed import GZIP_WINDOW
from server.database.reports import KEPT_BYTES, Stored
from server.negotiation import takes_encoding

IMMUTABLE = "public, max-age=31536000, immutable"

_PIECE = 64 * 1024

_PREFIX = "/api/v1/explorations/"
_ID = re.compile(r"[0-9a-f]{20}")
_TAGS = re.compile(r'(?:W/)?"([0-9a-f]+)(?:-gzip)?"|(\*)')


def is_known(stored: Stored, if_none_match: str | None) -> bool:
    """Whether the client has this body already, in whichever form."""
    return any(tag == stored.tag or any_of_them for tag, any_of_them in _TAGS.findall(if_none_match or ""))


def whole_answer(stored: Stored, status: int, headers: dict[str, str], accept_encoding: str | None) -> Response:
    """The body in the form that the client takes, with headers that say which it is."""
    if takes_encoding("gzip", accept_encoding):
        return Response(stored.gzipped, status, headers | _form(stored, True), media_type="application/json")
    headers |= _form(stored, False)
    if stored.length <= KEPT_BYTES:
        return Response(stored.body, status, headers, media_type="application/json")
    # A reader who takes it slowly, or not at all, must not hold all of it in memory.
    headers["Content-Length"] = str(stored.length)
    return StreamingResponse(_inflated(stored.gzipped), status, headers, media_type="application/json")


def stored_answer(stored: Stored, accept_encoding: str | None, if_none_match: str | None) -> Response:
    """The answer to a GET of the report."""
    headers = {"Cache-Control": IMMUTABLE if stored.is_reusable else "no-cache"}
    if is_known(stored, if_none_match):
        headers |= _form(stored, takes_encoding("gzip", accept_encoding))
        headers.pop("Content-Encoding", None)
        return Response(status_code=304, headers=headers)
    return whole_answer(stored, 200, headers, accept_encoding)


def _form(stored: Stored, is_gzipped: bool) -> dict[str, str]:
    vary = {"Vary": "Accept, Accept-Encoding"}
    if is_gzipped:
        return vary | {"ETag": f'"{stored.tag}-gzip"', "Content-Encoding": "gzip"}
    return vary | {"ETag": f'"{stored.tag}"'}


async def _inflated(gzipped: bytes) -> AsyncIterator[bytes]:
    stream = zlib.decompressobj(GZIP_WINDOW)
    for first in range(0, len(gzipped), _PIECE):
        rest = gzipped[first : first + _PIECE]
        while rest:
            yield stream.decompress(rest, _PIECE)
            rest = stream.unconsumed_tail
    yield stream.flush()


class StoredAnswers:
    """The middleware: `cached` finds a report in memory."""

    def __init__(self, app: ASGIApp, cached: Callable[[str], Stored | None]) -> None:
        self._app = app
        self._cached = cached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(_PREFIX):
            return None
        id = scope["path"][len(_PREFIX) :]
        if _ID.fullmatch(id) is None:
            return None
        headers = dict(scope["headers"])
        if headers.get(b"accept", b"*/*") not in (b"*/*", b"application/json"):
            return None  # it may want another form
        stored = self._cached(id)
        if stored is None:
            return None
        accept_encoding = headers.get(b"accept-encoding", b"").decode("latin-1")
        return stored_answer(stored, accept_encoding, headers.get(b"if-none-match", b"").decode("latin-1"))
