"""Errors of the service, as RFC 9457 asks: `application/problem+json` with a sentence that helps.

A snippet that fails is no error of the service: it has a report. These are for requests that cannot be served: what
is wrong, where, and what to do about it.
"""

from __future__ import annotations

import html
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from server.heads import answers_head
from server.negotiation import preferred
from server.requests import said_of_fault
from server.small_page import small_page

MEDIA_TYPE = "application/problem+json"
_OF_PROGRAMS = "/api/"
MOST_ERRORS = 20
MOST_TEXT = 300


class FieldProblem(BaseModel):
    """One thing that is wrong with a request, and where."""

    where: str = Field(
        description="The field of the body, or the parameter, with dots between.", examples=["body.timing.min_runs"]
    )
    message: str = Field(description="What is wrong with it.", examples=["it must be greater than or equal to 1"])


class ProblemBody(BaseModel):
    """The body of every error answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "There is no exploration 00000000000000000000 here.",
                "instance": "/api/v1/explorations/00000000000000000000",
                "request_id": "4f0c6c1b0f4e4a0f9d7c2f5f0b1e6a3d",
                "errors": [],
            }
        }
    )

    type: str = Field(default="about:blank", description="Always about:blank: the status says of what kind it is.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What is wrong, where, and what to do, in a sentence or two.")
    instance: str | None = Field(default=None, description="The path that was asked for.")
    request_id: str | None = Field(
        default=None, description="The request's id, as in the answer's X-Request-ID and in the service's log."
    )
    errors: list[FieldProblem] = Field(
        default=[], description=f"All that is wrong with the request, up to {MOST_ERRORS} faults; `detail` counts them."
    )


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
    """A problem as the answer to the request of `scope`."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem, scope: Scope) -> None:
        body = ProblemBody(
            title=HTTPStatus(problem.status).phrase,
            status=problem.status,
            detail=_whole(problem.detail),
            instance=_whole(scope["path"]),
            request_id=scope.get("state", {}).get("request_id"),
            errors=problem.errors,
        )
        super().__init__(body.model_dump_json(), problem.status, problem.headers)


def problem_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can answer with these statuses. `DescribedAPI` defines what they refer to."""
    schema = {"$ref": "#/components/schemas/ProblemBody"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Makes every expected error of `app` a problem document. `RequestContextMiddleware` sees to the others."""
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(RequestValidationError, _answer_invalid)


async def _answer_problem(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, Problem)
    return ProblemResponse(failure, request.scope)


async def _answer_http(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException)
    path = request.url.path[:MOST_TEXT]
    headers = dict(failure.headers or {})
    if failure.status_code == 404 and not path.startswith(_OF_PROGRAMS):
        headers["Vary"] = "Accept"
        # Of a browser's requests only those for a page itself like HTML best.
        if preferred(request.headers.get("accept"), (MEDIA_TYPE, "text/html")) == "text/html":
            body = f'<p>There is nothing at {html.escape(path)}.</p>\n<p><a href="/">Go to the start page</a></p>'
            return small_page("nothing here", body, 404, headers)
    if failure.status_code == 405:
        headers = {"Allow": ", ".join(_allowed(request))}
    detail = {
        400: "The body is not JSON in UTF-8, is nested too deeply, or has over 4,300 digits in a number.",
        404: f"There is nothing at {path}. The API is described at /api/v1/openapi.json.",
        405: f"{path} does not answer {request.method}; see /api/v1/openapi.json for what it answers.",
        413: "The body of the request is too large; a snippet may have at most 64 KiB.",
    }.get(failure.status_code, str(failure.detail))
    return ProblemResponse(Problem(failure.status_code, detail, headers=headers), request.scope)


def _allowed(request: Request) -> list[str]:
    """The methods that the path answers (RFC 9110, 15.5.6). The router names those of one of its routes alone."""
    found = [
        method
        for method in ("GET", "POST", "DELETE")
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    return ["HEAD", *found] if "GET" in found and answers_head(request.url.path) else found


async def _answer_invalid(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    found = failure.errors()
    # Only what the checks say is passed on: neither the input nor the context, which may quote the snippet.
    errors = [
        FieldProblem(where=_whole(".".join(str(part) for part in error["loc"])), message=_whole(said_of_fault(error)))
        for error in found[:MOST_ERRORS]
    ]
    if found and found[0]["type"] == "model_attributes_type" and not _is_json(request.headers.get("content-type", "")):
        errors = [FieldProblem(where="body", message="it is not called JSON: send Content-Type: application/json")]
    first = errors[0] if errors else FieldProblem(where="body", message="invalid")
    listed = "in `errors`" if len(found) <= MOST_ERRORS else f"of which `errors` has the first {MOST_ERRORS}"
    more = f" ({len(found) - 1} more, {listed})" if len(found) > 1 else ""
    detail = f"The request is not valid at {first.where}: {first.message}{more}. Change it and send it again."
    return ProblemResponse(Problem(422, detail, errors=errors), request.scope)


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower().endswith("json")


def _whole(text: str) -> str:
    """`text` as UTF-8 can carry it, and no longer than an answer should quote."""
    if len(text) > MOST_TEXT + 200:
        text = f"{text[:MOST_TEXT]}… ({len(text)} characters)"
    return text.encode("utf-8", "backslashreplace").decode()
