"""The service as an ASGI application: `create_app` puts the rooms together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI, Security
from starlette.middleware.cors import CORSMiddleware

from server import logs, problems
from server.clients import AdmissionMiddleware, Clients, Counts
from server.explorations import Explorations
from server.identity import compiler_version
from server.jobs import Jobs
from server.metrics import Metrics
from server.openapi import DESCRIPTION, PATH, TAGS, TOKEN_SCHEME, DescribedAPI
from server.problems import problem_answers
from server.request_context import HEADER, RequestContextMiddleware
from server.routes import catalogue, explorations, health, page, renderings, session
from server.security import SecurityMiddleware, SitePolicy
from server.settings import Settings, WebSettings
from server.store import Store
from server.tokens import Quota, TokenFile
from server.worker_process import WorkerProcess

MAX_BODY_BYTES = 1024 * 1024
"""Larger than any valid request: 64 KiB of source, all of it escaped, and the options."""


def create_app(settings: Settings | None = None, **worker_overrides: object) -> FastAPI:
    """The service with `settings`, by default those of the environment.

    `worker_overrides` replace fields of the worker's configuration: tests put small programs in the compiler's place.
    """
    settings = settings or Settings.load()
    logs.configure(settings.log_format)
    for sentence in settings.warnings():
        structlog.get_logger(__name__).warning("unsafe_settings", told=sentence)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = Store(f"sqlite+aiosqlite:///{settings.data_folder() / 'explorations.sqlite3'}")
        await store.open()
        worker = WorkerProcess(settings, **worker_overrides)
        metrics = Metrics()
        jobs = Jobs(settings, worker, store, metrics)
        app.state.worker, app.state.metrics = worker, metrics
        app.state.explorations = Explorations(store, jobs, worker, metrics)
        # The worker imports torch for seconds; the service answers meanwhile.
        worker.start()
        jobs.start()
        try:
            yield
        finally:
            await jobs.stop()
            await worker.stop()
            await store.close()

    app = DescribedAPI(
        title="Fusionscope",
        version=compiler_version(),
        summary="See what a compiler makes of your PyTorch code, and why.",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        # Bodies that announce their size are refused by our own middleware, with a better answer.
        max_body_size=2 * MAX_BODY_BYTES,
        openapi_url=PATH,
        # An address has one form; a redirection would only hide that another one was asked for.
        redirect_slashes=False,
        # The interactive pages load their code from another site, which our own security policy forbids.
        docs_url=None,
        redoc_url=None,
    )
    _protect(app, settings)
    problems.install(app)
    token = [Security(TOKEN_SCHEME)] if settings.tokens is not None else []
    common = problem_answers(401, 421, 429, 500)
    # Addresses with a suffix come first: `/{id}` would take the suffix for a part of the id.
    for router in (renderings.router, explorations.router, catalogue.router):
        app.include_router(router, dependencies=token, responses=common)
    app.include_router(health.router, responses=common)
    app.include_router(session.router)
    page.install(app, settings.static_folder())
    return app


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
    app.add_middleware(RequestContextMiddleware, log_requests=settings.log_requests)
