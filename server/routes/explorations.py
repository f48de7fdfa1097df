"""/api/v1/explorations: ask for one, read it, follow it, cancel it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.sse import EventSourceResponse, ServerSentEvent

from compiler.comparison import Comparison
from compiler.report import Report
from compiler.why import Answer
from server.beside import comparison_as_markdown
from server.clients import admission, too_many
from server.database.reports import Child
from server.events import event_id
from server.explorations import Exploration, Explorations, QueueFull
from server.problems import Problem, problem_answers
from server.requests import ExplorationRequest
from server.routes.health import Web
from server.stored_answers import IMMUTABLE, encoded, stored_answer
from server.summary import markdown

router = APIRouter(prefix="/api/v1/explorations", tags=["explorations"])

Id = Annotated[str, PathParameter(description="Id of an exploration.", min_length=1, max_length=64)]

NodeName = Annotated[
    str, Query(description="A loop, a node of either FX graph, or a kernel.", min_length=1, max_length=200)
]


async def explorations(web: Web) -> Explorations:
    return web.explorations


Service = Annotated[Explorations, Depends(explorations)]


@router.post(
    "",
    response_model=Report,
    responses={
        202: {"model": Report, "description": "Under way; Location says where."},
        **problem_answers(400, 403, 413, 422, 429, 503),
    },
)
async def ask(
    request: Request,
    asked: ExplorationRequest,
    service: Service,
    admit: Annotated[Callable[[], None], Depends(admission)],
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end.")] = 0.0,
) -> Response:
    """Explores a snippet, or finds the report of one that was explored before."""
    try:
        exploration = await service.ask(asked, request.state.client, wait, admit)
    except QueueFull as full:
        raise _queue_full(full) from None
    location = f"/api/v1/explorations/{exploration.id}"
    headers = {"Location": location, "Cache-Control": "no-store"}
    return _json(request, exploration, 200 if exploration.is_done else 202, headers)


# Before `/{id}`, which would take the suffix for a part of the id.
@router.get("/{id}.md", response_class=Response, responses=problem_answers(404, 409, 422))
async def read_as_text(id: Id, service: Service) -> Response:
    """The report as Markdown; of one that is based on another, the two side by side as well."""
    exploration = await service.find(id)
    report = await service.report(id)
    text = markdown(report)
    if report.based_on is not None and exploration.is_done:
        # The first may have been removed from the store since.
        with contextlib.suppress(Problem):
            text += "\n" + comparison_as_markdown(await service.comparison(id, None))
    headers = {"Cache-Control": _cache_control(exploration)}
    return Response(text, headers=headers, media_type="text/markdown; charset=utf-8")


@router.get("/{id}", response_model=Report, responses={304: {"description": "Unchanged."}, **problem_answers(404, 422)})
async def read(
    request: Request, id: Id, service: Service, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """The report so far; it never changes any more once it is done, unless it is asked for anew."""
    exploration = await service.find(id)
    if exploration.stored is not None:
        return stored_answer(exploration.stored, request.headers.get("accept-encoding"), if_none_match)
    return _json(request, exploration, 200, {"Cache-Control": "no-cache"})


async def _existing(id: Id, service: Service) -> str:
    """Answers 404 before a stream begins: afterwards it would be too late for a status."""
    await service.find(id)
    return id


@router.get("/{id}/events", response_class=EventSourceResponse, responses=problem_answers(404, 422))
async def follow(
    id: Annotated[str, Depends(_existing)],
    service: Service,
    last_event_id: Annotated[str | None, Header()] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `queued` {position: how many are before it}, `started` {wall_seconds}, `stage` {stage,
    changed: the parts of the report that are new, by their JSON pointers}, `log` {text}, and `done` {status} last.

    A reader that comes back with `Last-Event-ID` goes on after that one. An exploration whose worker was lost begins
    again: it is told from `queued` on, under the number of the next attempt."""
    async for event in service.events(id, event_id(last_event_id)):
        yield ServerSentEvent(raw_data=event.data, event=event.name, id=str(event.id))


@router.get("/{id}/why", responses=problem_answers(404, 422))
async def why(id: Id, a: NodeName, b: NodeName, service: Service) -> list[Answer]:
    """Why two nodes are, or are not, in one kernel: for any two, whether or not the scheduler asked about them."""
    return await service.why(id, a, b)


@router.get("/{id}/children", responses=problem_answers(404, 422))
async def children(id: Id, service: Service) -> list[Child]:
    """The explorations that ask "what if" of this one and are done, the newest first."""
    return await service.children(id)


@router.get("/{id}/comparison", responses=problem_answers(404, 422))
async def comparison(
    id: Id,
    service: Service,
    other: Annotated[
        str | None, Query(alias="with", description="Id of another one.", min_length=1, max_length=64)
    ] = None,
) -> Comparison:
    """This exploration beside the one that it is based on, or beside another one of the same source."""
    return await service.comparison(id, other)


@router.delete("/{id}", response_model=Report, responses=problem_answers(403, 404, 422))
async def cancel(request: Request, id: Id, service: Service) -> Response:
    """Cancels an exploration that waits or runs, and answers with its report; one that is done stays as it is."""
    exploration = await service.cancel(id)
    return _json(request, exploration, 200 if exploration.is_done else 202, {"Cache-Control": "no-store"})


_FULL = {"all": "explorations wait already", "own": "of yours wait already", "running": "of yours wait or run already"}


def _queue_full(full: QueueFull) -> Problem:
    told = f"{full.number} {_FULL[full.of]}, which is as many as may. Try again in {math.ceil(full.seconds)} seconds."
    return too_many(told, full.seconds)


def _json(request: Request, exploration: Exploration, status: int, headers: dict[str, str]) -> Response:
    # The body is JSON already, checked when it came from the worker: it is not read and written again.
    if exploration.stored is not None:
        body, more = encoded(exploration.stored, request.headers.get("accept-encoding"))
        return Response(body, status, {**headers, **more}, media_type="application/json")
    return Response(exploration.so_far, status, headers, media_type="application/json")


def _cache_control(exploration: Exploration) -> str:
    return IMMUTABLE if exploration.is_reusable else "no-cache"
