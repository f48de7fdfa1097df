"""The service as an ASGI application: `create_app` puts the rooms together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from server import logs, problems
from server.identity import compiler_version
from server.problems import ProblemBody
from server.routes import catalogue, explorations, health, page
from server.security import SecurityMiddleware
from server.settings import Settings
from server.stored_answers import StoredAnswers
from server.web import running

MAX_BODY_BYTES = 1024 * 1024
"""Larger than any valid request: 64 KiB of source, all of it escaped, and the options."""


def create_app(settings: Settings | None = None, worker_arguments: tuple[str, ...] | None = None) -> FastAPI:
    """Web with `settings`, by default those of the environment.

    Where `worker_arguments` is given, a worker of this machine is started beside it, with these arguments.
    """
    settings = settings or Settings.load()
    logs.configure(settings.log_format)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, worker_arguments) as web:
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
    app.add_middleware(StoredAnswers, cached=lambda id: app.state.web.explorations.cached(id))
    app.add_middleware(SecurityMiddleware, host_names=settings.host_names(), max_body_bytes=MAX_BODY_BYTES)
    problems.install(app)
    for router in (explorations.router, catalogue.router, health.router):
        app.include_router(router)
    page.install(app, settings.static_folder())
    _describe_problems(app)
    return app


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
