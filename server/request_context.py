"""What holds for a request as a whole: its id, its line in the log, and that it is answered whatever happens.

The id is the client's own from `X-Request-ID`, where that is a short word, or else a new one. It is bound to every log
line of the request, and stands in the answer's header and in every problem.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.problems import Problem, ProblemResponse

HEADER = "X-Request-ID"
_VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

log = structlog.get_logger(__name__)


class AnswerBroken(Exception):
    """An answer that had begun cannot be finished. The server closes the connection, so that the client sees it."""


class RequestContextMiddleware:
    """The outermost layer. Written for ASGI directly, so that streams stay streams."""

    def __init__(self, app: ASGIApp, log_requests: bool, observe: Callable[[Scope, int, float], None]) -> None:
        """`observe` is told of each request once it is over: its scope, the status, and the seconds that it took."""
        self._app = app
        self._log_requests = log_requests
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _VALID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status, began = 0, time.monotonic()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            except asyncio.CancelledError:
                # The server ends, and has waited for this answer as long as it may.
                if status:
                    raise
                await ProblemResponse(_ENDING, scope)(scope, receive, send_with_id)
            except Exception as failure:
                log.error("request_failed", method=scope["method"], path=scope["path"], exc_info=failure)
                if status:
                    # What caught this would else be logged by the server, message and all.
                    raise AnswerBroken("The answer had begun; see request_failed.") from None
                await ProblemResponse(_UNEXPECTED, scope)(scope, receive, send_with_id)
            finally:
                seconds = time.monotonic() - began
                self._observe(scope, status, seconds)
                if self._log_requests:
                    self._tell(scope, status, seconds)

    @staticmethod
    def _tell(scope: Scope, status: int, seconds: float) -> None:
        client = scope["state"].get("client")
        log.info(
            "request",
            method=scope["method"],
            path=scope["path"],
            status=status,
            milliseconds=round(1000 * seconds, 1),
            client=None if client is None else client.key,
        )


_ENDING = Problem(
    503,
    "The service is ending, and this answer would have taken longer than it can wait. Send the request again in a "
    "moment.",
    headers={"Retry-After": "5"},
)
_UNEXPECTED = Problem(
    500,
    "The service failed while it answered. Its log says more under the request_id of this answer. Sending the request "
    "again may help.",
)
