"""The service as an ASGI application: `create_app` puts the rooms together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response

from server import logs, problems
from server.database.engine import DatabaseUnavailable
from server.database.reports import Stored
from server.identity import compiler_version
from server.problems import Problem, ProblemBody
from server.routes import catalogue, explorations, health, page
from server.security import SecurityMiddleware
from server.settings import Settings
from server.state import WebState
from server.stored_answers import StoredAnswers
from server.web import running

log = structlog.get_logger(__name__)

MAX_BODY_BYTES = 1024 * 1024
"""Larger than any valid request: 64 KiB of source, all of it escaped, and the options."""


def create_app(settings: Settings | None = None, worker: tuple[str, ...] | None = None) -> FastAPI:
    """Web with `settings`, by default those of the environment.

    Where `worker` is given, that program is started beside it: `local_worker.PROGRAM`, or one that stands in its place.
    """
    settings = settings or Settings.load()
    logs.configure(settings.log_format)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, worker) as web:
            app.state.web = web
            yield

    app = FastAPI(
        title="Fusionscope",
        version=compiler_version(),
        summary="See what a compiler makes of your PyTorch code, and why.",
        lifespan=lifespan,
        # Bodies that announce their size are refused by our own middleware, with a better answer.
        max_body_size=2 * MAX_BODY_BYTES,
        openapi_url="/api/v1/openapi.json",
        # The interactive pages load their code from another site, which our own security policy forbids.
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(StoredAnswers, cached=lambda id: _cached(app, id))
    app.add_middleware(SecurityMiddleware, host_names=settings.host_names(), max_body_bytes=MAX_BODY_BYTES)
    problems.install(app)
    app.add_exception_handler(DatabaseUnavailable, _answer_unavailable)
    for router in (explorations.router, catalogue.router, health.router):
        app.include_router(router)
    page.install(app, settings.static_folder())
    _describe_problems(app)
    return app


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
    return problems.ProblemResponse(problem, request.url.path)


def _describe_problems(app: FastAPI) -> None:
    """Adds the problem document, to which the routes only refer, to the description of the API."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        description = describe()
        schema = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas = description.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(schema.pop("$defs", {}))
        schemas["ProblemBody"] = schema
        return description

    app.openapi = openapi  # type: ignore[method-assign]
