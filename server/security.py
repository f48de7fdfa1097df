"""Headers and checks that protect a person's browser, and this machine from other web sites.

The service runs code, usually on the reader's own machine. Without the two checks here, any page open in the same
browser could send snippets to it: directly (the Origin check), or by pointing its own name here (the Host check).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.problems import Problem, ProblemResponse

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

HEADERS = {
    "Content-Security-Policy": "; ".join(f"{directive} {sources}" for directive, sources in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class SecurityMiddleware:
    """Refuses requests of other sites and adds the headers. Written for ASGI directly, so that streams stay streams."""

    def __init__(self, app: ASGIApp, host_names: frozenset[str], max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._host_names = host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await ProblemResponse(refusal, scope["path"])(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> Problem | None:
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if "*" not in self._host_names and name.lower() not in self._host_names:
            return Problem(
                421,
                f"This server is not known as {name!r}. Start it with FUSIONSCOPE_ALLOWED_HOSTS={name} "
                "if it should be.",
            )
        size = headers.get("content-length", "0")
        if size.isdigit() and int(size) > self._max_body_bytes:
            return Problem(413, f"The body has {size} bytes; at most {self._max_body_bytes} are accepted.")
        origin = headers.get("origin")
        if method not in _SAFE_METHODS and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return Problem(
                403, f"Requests that change something are only taken from this server's own page, not from {origin}."
            )
        return None
