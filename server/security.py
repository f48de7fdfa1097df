"""Headers and checks that protect a person's browser, and this machine from other web sites.

The service runs code, usually on the reader's own machine. Without the two checks here, any page open in the same
browser could send snippets to it: directly (the Origin check), or by pointing its own name here (the Host check).

A page can only point a *name* at another machine. A browser that was told an address talks to that address, so a Host
that is an IP literal, or `localhost`, is never another site's; every other name must be declared.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.problems import Problem, ProblemResponse

EMBED_PREFIX = "/embed/"

_POLICY = {
    "default-src": "'none'",
    # No inline script. The graph layout is Graphviz compiled to WebAssembly, in a worker of our own.
    "script-src": "'self' 'wasm-unsafe-eval'",
    "worker-src": "'self'",
    # The editor writes its style sheet into the page as it starts.
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def _policy(**changes: str) -> str:
    directives = _POLICY | {name.replace("_", "-"): sources for name, sources in changes.items()}
    return "; ".join(f"{directive} {sources}" for directive, sources in directives.items())


HEADERS = {
    "Content-Security-Policy": _policy(),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class SitePolicy:
    """Whom the service answers.

    `host_names` are names, in small letters and without port, that the Host header may carry besides `localhost` and
    IP literals; `*` among them allows all. `origins` are other sites whose scripts may use the API; `*` allows all.
    `frame_ancestors` are sites that may show `/embed/{id}` in a frame besides this one.
    """

    host_names: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    frame_ancestors: tuple[str, ...] = ()
    embed_headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        ancestors = " ".join(("'self'", *self.frame_ancestors))
        embedded = HEADERS | {
            "Content-Security-Policy": _policy(frame_ancestors=ancestors),
            # A page that isolates itself may only frame what allows it in so many words.
            "Cross-Origin-Resource-Policy": "cross-origin" if self.frame_ancestors else "same-origin",
        }
        # The older header knows no list of sites. Browsers that know frame-ancestors pass it over.
        del embedded["X-Frame-Options"]
        object.__setattr__(self, "embed_headers", embedded)

    def knows(self, host: str) -> bool:
        """Whether `host`, a Host header, names this server."""
        name = host_name(host)
        return name == "localhost" or name in self.host_names or "*" in self.host_names or _is_address(name)

    def takes(self, origin: str, host: str) -> bool:
        """Whether a page of `origin` may send requests that change something to `host`."""
        try:
            is_own = urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:  # it is no address
            return False
        return is_own or origin in self.origins or "*" in self.origins


def host_name(host: str) -> str:
    """A Host header in small letters, without its port, the brackets of IPv6 and a last dot; "" where it is none."""
    found = _HOST.fullmatch(host)
    return "" if found is None else (found[1] or found[2].rstrip(".")).lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class SecurityMiddleware:
    """Refuses requests of other sites and adds the headers. Written for ASGI directly, so that streams stay streams."""

    def __init__(self, app: ASGIApp, policy: SitePolicy, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        added = self._policy.embed_headers if scope["path"].startswith(EMBED_PREFIX) else HEADERS

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await ProblemResponse(refusal, scope)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> Problem | None:
        named = headers.getlist("host")
        host = named[0] if len(named) == 1 else ""
        if not self._policy.knows(host):
            name = host_name(host)
            return Problem(
                421,
                f"This server is not known as {name[:100]!r}. Its operator can add the name to "
                "FUSIONSCOPE_ALLOWED_HOSTS.",
            )
        size = headers.get("content-length", "0")
        # Python reads no number of more than 4300 digits.
        if size.isdecimal() and (len(size) > 18 or int(size) > self._max_body_bytes):
            return Problem(413, f"The body has {size[:30]} bytes; at most {self._max_body_bytes} are accepted.")
        origin = headers.get("origin")
        if method not in _SAFE_METHODS and origin is not None and not self._policy.takes(origin, host):
            return Problem(
                403,
                "Requests that change something are only accepted from this server's own page, not from "
                f"{origin[:100]!r}. Its operator can allow that site in FUSIONSCOPE_CORS_ORIGINS.",
            )
        return None
