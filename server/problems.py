"""Errors of the service, as RFC 9457 asks: `application/problem+json` with a sentence that helps.

A snippet that fails is no error of the service: it has a report. These are for requests that cannot be served: what
is wrong, where, and what to do about it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger(__name__)


class FieldProblem(BaseModel):
    """One thing that is wrong with a request, and where: `body.timing.min_runs`, `query.wait`."""

    where: str
    message: str


class ProblemBody(BaseModel):
    """The body of every error answer."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="What is wrong, where, and what to do, in a sentence or two.")
    instance: str | None = Field(default=None, description="The path that was asked for.")
    errors: list[FieldProblem] = []


class Problem(Exception):
    """Raised anywhere while a request is served; becomes the answer."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: list[FieldProblem] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.errors, self.headers = status, detail, errors or [], headers


class ProblemResponse(Response):
    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem, path: str) -> None:
        body = ProblemBody(
            title=HTTPStatus(problem.status).phrase,
            status=problem.status,
            detail=problem.detail,
            instance=path,
            errors=problem.errors,
        )
        super().__init__(body.model_dump_json(), problem.status, problem.headers)


def problem_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can answer with these statuses."""
    schema = {"$ref": "#/components/schemas/ProblemBody"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Makes every error of `app` a problem document."""
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(Exception, _answer_unexpected)


async def _answer_problem(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, Problem)
    return ProblemResponse(failure, request.url.path)


async def _answer_http(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException)
    detail = {
        404: f"There is nothing at {request.url.path}. The API is described at /api/v1/openapi.json.",
        405: f"{request.url.path} does not answer {request.method}; see /api/v1/openapi.json for what it answers.",
        413: "The body of the request is too large; a snippet may have at most 64 KiB.",
    }.get(failure.status_code, str(failure.detail))
    headers = dict(failure.headers) if failure.headers else None
    return ProblemResponse(Problem(failure.status_code, detail, headers=headers), request.url.path)


async def _answer_invalid(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    errors = [
        FieldProblem(where=".".join(str(part) for part in error["loc"]), message=error["msg"])
        for error in failure.errors()
    ]
    first = errors[0] if errors else FieldProblem(where="body", message="invalid")
    more = f" ({len(errors) - 1} more in `errors`)" if len(errors) > 1 else ""
    detail = f"The request is not valid at {first.where}: {first.message}{more}. Change it and send it again."
    return ProblemResponse(Problem(422, detail, errors=errors), request.url.path)


async def _answer_unexpected(request: Request, failure: Exception) -> Response:
    log.exception("request_failed", path=request.url.path, exc_info=failure)
    detail = "The service failed while it answered; its log says more. Sending the request again may help."
    return ProblemResponse(Problem(500, detail), request.url.path)
