"""Which form of an answer a client likes best, by its Accept header, which encodings it takes, and the header Vary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_RANGE = re.compile(r"([\w.+*-]+/[\w.+*-]+)(?:\s*;\s*(?!q=)[\w-]+=[^;]*)*(?:\s*;\s*q=([01](?:\.\d{0,3})?))?", re.I)


def preferred(accept: str | None, offered: Sequence[str]) -> str:
    """The media type of `offered` that an Accept header likes best (RFC 9110, 12.5.1); the first one where it likes
    none, or several alike."""
    ranges = [found for part in (accept or "*/*").split(",")[:32] if (found := _RANGE.fullmatch(part.strip()))]
    weights = []
    for media_type in offered:
        fits = [(_closeness(one[1], media_type), float(one[2] or 1)) for one in ranges]
        weights.append(max((fit for fit in fits if fit[0]), default=(0, 0.0))[1])
    return offered[weights.index(max(weights))]


def _closeness(wanted: str, media_type: str) -> int:
    """3 for the type itself, 2 for its kind, 1 for all types, 0 for another one."""
    wanted = wanted.lower()
    if wanted == media_type:
        return 3
    return 2 if wanted == f"{media_type.partition('/')[0]}/*" else int(wanted == "*/*")


def takes_encoding(encoding: str, accept_encoding: str | None) -> bool:
    """Whether a client with this Accept-Encoding header takes a body in `encoding`, such as gzip or br."""
    for part in (accept_encoding or "").split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower().removeprefix("x-") in (encoding, "*"):
            return re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


class VaryOnce:
    """Middleware that names each header once in Vary. The compression of whole answers adds its own without a look."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_vary(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (vary := headers.get("vary")) is not None:
                    headers["Vary"] = ", ".join(dict.fromkeys(name.strip() for name in vary.split(",")))
            await send(message)

        await self._app(scope, receive, send_with_vary)
