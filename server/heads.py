"""HEAD: what GET would answer, without its body (RFC 9110, 9.3.2). Monitors and proxies ask this way."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


def answers_head(path: str) -> bool:
    """Whether HEAD is answered where GET is: a stream of events has no end that could be told."""
    return not path.endswith("/events")


class Heads:
    """The middleware. What it leaves out keeps its 405."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or not answers_head(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = {**scope, "method": "GET"}
        await self._app(asked, receive, send_head)
        # Metrics are counted by it.
        if "route" in asked:
            scope["route"] = asked["route"]
