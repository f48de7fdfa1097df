"""Who asks, and how much they may ask for.

A client is a token, or, where there is none, the address that asks. Its key is what requests are counted by, and what
the queue and the processes apart are fair between. Counts are kept in memory by the moving window of the package
`limits`: a refused request is told when the oldest one that counts leaves the window, which is when the next one will
be taken.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlencode

from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from compiler.wording import counted
from server.apart import ASKING
from server.problems import Problem, ProblemResponse
from server.tokens import Quota, TokenFile

COOKIE = "fusionscope_token"
"""Set by /session, so that the page, which cannot send a header with every link, has a token too."""

SIGN_IN = "/session"

_OPEN = frozenset({"/healthz", "/readyz", SIGN_IN, "/favicon.svg", "/docs"})
_OPEN_FOLDERS = ("/assets/", "/docs/")
_PAGES = ("/x/", "/embed/")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_HIGHLIGHT = "/api/v1/highlight"
_METRICS = "/metrics"


@dataclass(frozen=True)
class Client:
    """Who asks. `may_explore` says whether new explorations, and cancelling, are open to them."""

    key: str
    """"token:NAME" or "address:ADDRESS", at most 60 characters: what the job table and logs know a client by."""
    quota: Quota
    may_explore: bool = True

    @property
    def jobs_at_once(self) -> int | None:
        """The most explorations of theirs that may wait or run at the same time; None for any number."""
        return self.quota.jobs_at_once or None


class Counts:
    """How often each client has asked of late."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def take_request(self, client: Client) -> None:
        """Counts a request. Raises `Problem` 429."""
        amount = client.quota.requests_per_minute
        if amount:
            self._take(RateLimitItemPerMinute(amount), client, f"{counted(amount, 'request')} a minute")

    def take_exploration(self, client: Client) -> None:
        """Counts a new exploration. Raises `Problem` 429."""
        amount = client.quota.explorations_per_hour
        if amount:
            self._take(RateLimitItemPerHour(amount), client, f"{counted(amount, 'new exploration')} an hour")

    def _take(self, item: RateLimitItem, client: Client, allowed: str) -> None:
        if self._limiter.hit(item, client.key):
            return
        seconds = max(1, math.ceil(self._limiter.get_window_stats(item, client.key).reset_time - time.time()))
        raise too_many(f"Your limit of {allowed} is reached. Try again in {counted(seconds, 'second')}.", seconds)


def too_many(detail: str, seconds: float) -> Problem:
    """The answer 429, with the seconds after which the request would be taken."""
    return Problem(429, detail, headers={"Retry-After": str(max(1, math.ceil(seconds)))})


async def admission(request: Request) -> Callable[[], None]:
    """What a route calls before it makes a new exploration: it raises `Problem` where this client may not have one.
    A dependency. What is stored already is answered without it."""
    client: Client = request.state.client
    counts: Counts = request.app.state.counts

    def admit() -> None:
        if request.app.state.read_only:
            raise Problem(403, "This service is read-only: it serves stored explorations and explores nothing new.")
        if not client.may_explore:
            raise _unauthorized(
                f"A token is needed to explore: send it as Authorization: Bearer, or sign in at {SIGN_IN}."
            )
        counts.take_exploration(client)

    return admit


def address_name(host: str | None) -> tuple[str, bool]:
    """What everybody at an address is counted by, and whether that is this machine."""
    if not host:
        # A Unix socket has no address: whoever may write to it is trusted as this machine is.
        return "local", True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        # A proxy's word for whom it does not name. All of them are one client, and nobody that is trusted.
        return "unknown", False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address_name(str(address.ipv4_mapped))
        if not address.is_loopback:
            # Whoever has one address of a network of 2^64 has them all.
            return str(ipaddress.ip_network((address, 64), strict=False)), False
    return str(address), address.is_loopback


class Clients:
    """Tells who asks: by a token where there are any, else by address."""

    def __init__(self, tokens: TokenFile | None, without_token: Quota, public_reads: bool) -> None:
        self._tokens = tokens
        self._without_token = without_token
        self._public_reads = public_reads

    def by_address(self, host: str | None) -> Client:
        """The client at an address. One on this machine may ask for as much as it likes."""
        name, is_local = address_name(host)
        return Client(f"address:{name}", Quota() if is_local else self._without_token)

    def of(self, scope: Scope, address: Client) -> Client:
        """Who sent the request, which came from `address`. Raises `Problem` 401, in the same words whatever is wrong
        with a token."""
        if self._tokens is None:
            return address
        headers = Headers(scope=scope)
        presented = _bearer(headers.get("authorization")) or _cookie(headers.get("cookie"))
        if presented is not None:
            holder = self._tokens.holder(presented)
            if holder is None:
                raise _unauthorized("This token is not accepted: it is unknown, was revoked, or has expired.")
            return Client(f"token:{holder.name}", holder)
        is_read = scope["method"] in _READS and scope["path"] != _METRICS
        if self._public_reads and (is_read or scope["path"] == _HIGHLIGHT):
            return Client(address.key, address.quota, may_explore=False)
        raise _unauthorized(f"A token is needed: send it as Authorization: Bearer, or sign in at {SIGN_IN}.")

    @property
    def need_tokens(self) -> bool:
        return self._tokens is not None

    def accepts(self, presented: str) -> bool:
        return self._tokens is not None and self._tokens.holder(presented) is not None


class AdmissionMiddleware:
    """Knows the client of each request, and counts it. Nothing is open but what is listed here, so that a new route is
    closed until somebody opens it."""

    def __init__(self, app: ASGIApp, clients: Clients, counts: Counts) -> None:
        self._app = app
        self._clients = clients
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._admit(scope)
        except Problem as refusal:
            answer: Response = ProblemResponse(refusal, scope)
            if refusal.status == 401 and is_page(scope["path"]) and scope["method"] in _READS:
                answer = RedirectResponse(f"{SIGN_IN}?{urlencode({'next': scope['path']})}", 303)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        connected = scope.get("client")
        address = self._clients.by_address(connected[0] if connected else None)
        state = scope.setdefault("state", {})
        # Until more is known; the log names who was refused, too.
        state["client"] = address
        path: str = scope["path"]
        if path not in _OPEN and not path.startswith(_OPEN_FOLDERS):
            try:
                state["client"] = self._clients.of(scope, address)
            except Problem:
                # Trying tokens is counted too.
                self._counts.take_request(address)
                raise
        ASKING.set(state["client"].key)
        self._counts.take_request(state["client"])


def is_page(path: str) -> bool:
    """Whether a person's browser asks for it, rather than a program."""
    return path == "/" or path.startswith(_PAGES)


def _bearer(header: str | None) -> str | None:
    scheme, _, credentials = (header or "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None


def _cookie(header: str | None) -> str | None:
    if header is None or COOKIE not in header:
        return None
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None and found.value else None


def _unauthorized(detail: str) -> Problem:
    return Problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
