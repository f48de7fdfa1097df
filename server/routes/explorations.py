"""/api/v1/explorations: ask for one, read it, follow it, cancel it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from compiler.comparison import Comparison
from compiler.report import Report
from compiler.why import Answer
from server.clients import admission
from server.explorations import Exploration
from server.negotiation import preferred
from server.problems import problem_answers
from server.requests import ExplorationRequest
from server.routes.parameters import Accept, Id, KnownTag, LastEventId, NodeName, OtherId, Service, Wait
from server.routes.renderings import rendered, unless_known
from server.store import Child

router = APIRouter(prefix="/api/v1/explorations", tags=["explorations"])


@router.post(
    "",
    response_model=Report,
    responses={
        202: {"model": Report, "description": "Under way; Location says where."},
        **problem_answers(400, 403, 413, 422, 503),
    },
)
async def ask(
    asked: ExplorationRequest,
    service: Service,
    admit: Annotated[Callable[[], None], Depends(admission)],
    wait: Wait = 0.0,
) -> Response:
    """Explores a snippet, or finds the report of one that was explored before."""
    exploration = await service.ask(asked, wait, admit)
    location = f"/api/v1/explorations/{exploration.id}"
    return _json(exploration, 200 if exploration.is_done else 202, {"Location": location, "Cache-Control": "no-store"})


@router.get(
    "/{id}",
    response_model=Report,
    responses={
        200: {"content": {form: {"schema": {"type": "string"}} for form in ("text/markdown", "text/html")}},
        304: {"description": "Unchanged."},
        **problem_answers(404, 422),
    },
)
async def read(
    id: Id,
    service: Service,
    if_none_match: KnownTag = None,
    accept: Accept = None,
) -> Response:
    """The report so far; it never changes any more once it is done.

    As JSON, or as Markdown or HTML where the Accept header likes one of them best.
    """
    form = preferred(accept, ("application/json", "text/markdown", "text/html"))
    if form != "application/json":
        return await rendered(service, id, form, if_none_match)
    exploration = await service.find(id)
    return unless_known(exploration.body, form, exploration, if_none_match)


async def _existing(id: Id, service: Service) -> str:
    """Answers 404 before a stream begins: afterwards it would be too late for a status."""
    await service.find(id)
    return id


@router.get("/{id}/events", response_class=EventSourceResponse, responses=problem_answers(404, 422))
async def follow(
    id: Annotated[str, Depends(_existing)],
    service: Service,
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `queued` {position}, `stage` {stage, report}, `log` {text}, and `done` {status} last."""
    after = int(last_event_id) if last_event_id is not None and re.fullmatch("[0-9]{1,18}", last_event_id) else 0
    async for event in service.events(id, after):
        yield ServerSentEvent(raw_data=event.data, event=event.name, id=str(event.number))


@router.get("/{id}/why", responses=problem_answers(404, 422))
async def why(id: Id, a: NodeName, b: NodeName, service: Service) -> list[Answer]:
    """Why two nodes are, or are not, in one kernel: for any two, whether or not the scheduler asked about them.

    A name may stand for many loop nodes; the first 9 pairs of them are answered.
    """
    return await service.why(id, a, b)


@router.get("/{id}/children", responses=problem_answers(404, 422))
async def children(id: Id, service: Service) -> list[Child]:
    """The explorations that ask "what if" of this one and are done, the newest first; at most 50."""
    return await service.children(id)


@router.get("/{id}/comparison", responses=problem_answers(404, 422))
async def comparison(
    id: Id,
    service: Service,
    other: OtherId = None,
) -> Comparison:
    """This exploration beside the one that it is based on, or beside another one of the same source."""
    return await service.comparison(id, other)


@router.delete("/{id}", response_model=Report, responses=problem_answers(403, 404, 422))
async def cancel(id: Id, service: Service) -> Response:
    """Cancels an exploration that waits or runs, and answers with its report; one that is done stays as it is."""
    exploration = await service.cancel(id)
    return _json(exploration, 200 if exploration.is_done else 202, {"Cache-Control": "no-store"})


def _json(exploration: Exploration, status: int, headers: dict[str, str]) -> Response:
    # The body is JSON already, checked when it came from the worker: it is not read and written again.
    return Response(exploration.body, status, headers, media_type="application/json")
