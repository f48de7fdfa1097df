"""The service as an ASGI application: `create_app` puts the rooms together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI, Request, Response, Security
from starlette.datastructures import State
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server import logs, problems
from server.clients import AdmissionMiddleware, Clients, Counts
from server.compressed_events import CompressedEvents
from server.database.engine import DatabaseUnavailable
from server.database.reports import Stored
from server.heads import Heads
from server.identity import compiler_version
from server.local_worker import LocalWorker
from server.negotiation import VaryOnce
from server.openapi import DESCRIPTION, PATH, TAGS, TOKEN_SCHEME, DescribedAPI
from server.problems import Problem, problem_answers
from server.profiles import WrongProfiles
from server.request_context import HEADER, RequestContextMiddleware
from server.routes import catalogue, documentation, explorations, health, lessons, page, renderings, session
from server.security import SecurityMiddleware, SitePolicy
from server.settings import Settings, WebSettings, WrongSettings
from server.state import WebState
from server.stored_answers import StoredAnswers
from server.tokens import Quota, TokenFile
from server.web import running

log = structlog.get_logger(__name__)

MAX_BODY_BYTES = 1024 * 1024
"""Larger than any valid request: 64 KiB of source, all of it escaped, and the options."""


_NO_DATABASE = (
    "Web does not start without its database: start that, make room on its disk, or name another one in the setting "
    "database."
)


def create_app(settings: Settings | None = None, worker: LocalWorker | None = None) -> FastAPI:
    """Web with `settings`, by default those of the environment. Where `worker` is given, it runs beside it."""
    settings = settings or Settings.load()
    logs.configure(settings.log_format)
    for sentence in settings.warnings():
        log.warning("unsafe_settings", told=sentence)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            try:
                app.state.web = await stack.enter_async_context(running(settings, worker))
            except DatabaseUnavailable as failure:
                log.error("database_unavailable", problem=str(failure), hint=_NO_DATABASE)
                app.state.has_told_failure = True
                raise
            except (WrongProfiles, WrongSettings) as wrong:
                log.error("wrong_settings", problem=str(wrong))
                app.state.has_told_failure = True
                raise
            yield

    app = DescribedAPI(
        title="Fusionscope",
        version=compiler_version(),
        summary="See what a compiler does with your PyTorch code, and why.",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        openapi_url=PATH,
        # An address has one form; a redirection would only hide that another one was asked for.
        redirect_slashes=False,
        # The interactive pages load their code from another site, which our own security policy forbids.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(_Start, state=app.state)
    # The inner ones first. Each event is compressed by itself: whole answers are compressed another way.
    app.add_middleware(CompressedEvents)
    app.add_middleware(GZipMiddleware, minimum_size=4096, compresslevel=4)
    app.add_middleware(VaryOnce)
    # What is answered here has passed every check that concerns all requests.
    app.add_middleware(StoredAnswers, cached=lambda id: _cached(app, id))
    app.add_middleware(Heads)
    # What announces its size was refused before: this counts what does not.
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=2 * MAX_BODY_BYTES)
    _protect(app, settings)
    problems.install(app)
    app.add_exception_handler(DatabaseUnavailable, _answer_unavailable)
    token = [Security(TOKEN_SCHEME)] if settings.tokens is not None else []
    common = problem_answers(401, 421, 429, 500)
    # Addresses with a suffix come first: `/{id}` would take the suffix for a part of the id.
    for router in (renderings.router, lessons.of_explorations, explorations.router):
        app.include_router(router, dependencies=token, responses={**common, **problem_answers(503)})
    for router in (catalogue.router, lessons.router):
        app.include_router(router, dependencies=token, responses=common)
    app.include_router(health.router, responses=common)
    app.include_router(session.router)
    documentation.install(app)
    page.install(app, settings.static_folder())
    return app


class _Start:
    """Keeps from the server's log the stack of a start that failed for what is in the log already."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            is_told = getattr(self._state, "has_told_failure", False)
            await send({**message, "message": ""} if is_told and message["type"].endswith(".failed") else message)

        await self._app(scope, receive, tell if scope["type"] == "lifespan" else send)


def _cached(app: FastAPI, id: str) -> Stored | None:
    web: WebState | None = getattr(app.state, "web", None)
    return web.explorations.cached(id) if web is not None else None


async def _answer_unavailable(request: Request, failure: Exception) -> Response:
    log.warning("database_unavailable", path=request.url.path, problem=str(failure))
    problem = Problem(
        503,
        "The database cannot be used at this moment. Nothing was lost; try again in a moment.",
        headers={"Retry-After": "2"},
    )
    return problems.ProblemResponse(problem, request.scope)


def _protect(app: FastAPI, settings: WebSettings) -> None:
    """Puts the layers around the routes, the innermost first. Raises `WrongTokens`."""
    tokens = TokenFile(settings.tokens) if settings.tokens is not None else None
    without_token = Quota(
        requests_per_minute=settings.requests_per_minute,
        explorations_per_hour=settings.explorations_per_hour,
        jobs_at_once=settings.jobs_at_once,
    )
    app.state.clients = Clients(tokens, without_token, settings.public_reads)
    app.state.counts, app.state.read_only = Counts(), settings.read_only
    app.add_middleware(AdmissionMiddleware, clients=app.state.clients, counts=app.state.counts)
    if settings.cors_origins:
        # A browser asks first whether it may send a token, and that question has none.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST", "DELETE"),
            allow_headers=("Authorization", "Last-Event-ID", "If-None-Match", HEADER),
            expose_headers=("ETag", "Location", "Retry-After", HEADER),
        )
    policy = SitePolicy(settings.host_names(), frozenset(settings.cors_origins), settings.frame_ancestors)
    app.add_middleware(SecurityMiddleware, policy=policy, max_body_bytes=MAX_BODY_BYTES)
    app.add_middleware(
        RequestContextMiddleware,
        log_requests=settings.log_requests,
        observe=lambda scope, status, seconds: _observe(app, scope, status, seconds),
    )


def _observe(app: FastAPI, scope: Scope, status: int, seconds: float) -> None:
    web: WebState | None = getattr(app.state, "web", None)
    if web is not None:
        # What is in memory, and what is refused, is answered before a route is looked for.
        route = getattr(scope.get("route"), "path", "before routing")
        web.metrics.observe_request(route, status, seconds)
