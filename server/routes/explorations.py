"""/api/v1/explorations: ask for one, read it, follow it, cancel it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from compiler.comparison import Comparison
from compiler.report import Report
from compiler.why import MOST_PAIRS, Answer
from compiler.wording import counted
from server import readings
from server.clients import admission, too_many
from server.database.reports import MOST_CHILDREN, Child
from server.derived import derived
from server.events import event_id
from server.explorations import Exploration, QueueFull
from server.negotiation import preferred
from server.problems import Problem, problem_answers
from server.requests import ExplorationRequest
from server.routes.parameters import (
    CUT_HEADER,
    Accept,
    Follower,
    GraphName,
    Id,
    KernelCompiler,
    KernelLanguage,
    KernelName,
    KnownTag,
    LastEventId,
    NodeName,
    OtherId,
    Service,
    Wait,
    WantedTarget,
    cut,
    cut_at,
    json_answer,
    report_answer,
)
from server.routes.renderings import rendered
from server.stored_answers import stored_answer, whole_answer

router = APIRouter(prefix="/api/v1/explorations", tags=["explorations"])


@router.post(
    "",
    response_model=Report,
    responses={
        200: {"description": "Its report.", "content": report_answer("ok")},
        202: {
            "model": Report,
            "description": "Under way; Location says where.",
            "content": report_answer("running"),
        },
        **problem_answers(400, 403, 413, 422, 429, 503),
    },
)
async def ask(
    request: Request,
    asked: ExplorationRequest,
    service: Service,
    admit: Annotated[Callable[[], None], Depends(admission)],
    wait: Wait = 0.0,
) -> Response:
    """Explores a snippet, or finds the stored report of it."""
    return await _explored(request, asked, service, admit, wait)


async def _explored(
    request: Request, asked: ExplorationRequest, service: Service, admit: Callable[[], None], wait: float
) -> Response:
    try:
        exploration = await service.ask(asked, request.state.client, wait, admit)
    except QueueFull as full:
        raise _queue_full(full) from None
    location = f"/api/v1/explorations/{exploration.id}"
    headers = {"Location": location, "Cache-Control": "no-store"}
    return _json(request, exploration, 200 if exploration.is_done else 202, headers)


@router.get(
    "/{id}",
    response_model=Report,
    responses={
        200: {
            "description": "The report, or what there is of it so far.",
            "content": report_answer("ok")
            | {form: {"schema": {"type": "string"}} for form in ("text/markdown", "text/html")},
        },
        304: {"description": "Unchanged."},
        **problem_answers(404, 409, 422),
    },
)
async def read(
    request: Request, id: Id, service: Service, if_none_match: KnownTag = None, accept: Accept = None
) -> Response:
    """The report so far. Once done it changes only if the snippet is explored again.

    While its status is "running", `stages` lists the finished ones. `observed` is null until the snippet begins, and
    then has the seconds so far and the limit. A report that its time limit stopped has the results of all finished
    stages, and its error names the missing ones.

    The answer is JSON, or Markdown or HTML if the Accept header prefers one of them.
    """
    form = preferred(accept, ("application/json", "text/markdown", "text/html"))
    if form != "application/json":
        return await rendered(service, id, form, if_none_match)
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
    last_event_id: LastEventId = None,
    follower: Follower = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `queued` {position: how many are before it}, `started` {wall_seconds: how long it may run,
    started_at: when it began, in seconds since 1970 by the service's clock}, `stage` {stage, changed: the parts of the
    report that are new, by their JSON pointers; the list of stages alone if they are very large}, `log` {text}, and
    `done` {status} last.

    A reader that returns with `Last-Event-ID` gets the events after that one. If the worker of an exploration is lost,
    it begins again: its events start at `queued`, under the number of the next attempt."""
    async for event in service.events(id, event_id(last_event_id), follower):
        yield ServerSentEvent(raw_data=event.data, event=event.name, id=str(event.id))


@router.post(
    "/{id}/kernels/{name}/machine-code",
    response_model=Report,
    responses={
        200: {"description": "A report whose `machine_code` has it.", "content": report_answer("ok")},
        202: {"model": Report, "description": "Under way; Location says where.", "content": report_answer("running")},
        **problem_answers(403, 404, 409, 422, 429, 503),
    },
)
async def machine_code(
    request: Request,
    id: Id,
    name: KernelName,
    service: Service,
    admit: Annotated[Callable[[], None], Depends(admission)],
    graph: GraphName = None,
    compiler: KernelCompiler = "ours",
    language: KernelLanguage = None,
    target: WantedTarget = None,
    wait: Wait = 0.0,
) -> Response:
    """Compiles one kernel down to machine code for a target, without a device, or finds the stored result.

    The answer is an exploration of its own, whose source is the kernel's text. Its `machine_code` has every level with
    the lines of the kernel's source, and figures of the instructions: registers, occupancy, widths of loads and stores.
    The same parameters give the same exploration, so the request may be repeated until the result is there.
    """
    asked = await service.kernel_request(
        id, name, graph, language=language, target=target, is_of_peer=compiler == "peer"
    )
    return await _explored(request, asked, service, admit, wait)


@router.get(
    "/{id}/why", response_model=list[Answer], responses={**cut_at(MOST_PAIRS), **problem_answers(404, 409, 422)}
)
async def why(id: Id, a: NodeName, b: NodeName, service: Service) -> Response:
    """Why two nodes are, or are not, in one kernel. It answers for any two, even if the scheduler never looked at them.

    A name may stand for many loop nodes. The answer has their first 9 pairs.
    """
    answers, has_more = await derived(readings.answers, await service.unread(id), a, b)
    return json_answer(answers, {CUT_HEADER: str(MOST_PAIRS)} if has_more else {})


@router.get("/{id}/children", responses={**cut_at(MOST_CHILDREN), **problem_answers(404, 422)})
async def children(id: Id, service: Service, response: Response) -> list[Child]:
    """The finished "what if" explorations of this one, the newest first; at most 50."""
    return cut(await service.children(id), MOST_CHILDREN, response)


@router.get("/{id}/comparison", response_model=Comparison, responses=problem_answers(404, 409, 422))
async def comparison(
    id: Id,
    service: Service,
    other: OtherId = None,
) -> Response:
    """This exploration beside the one that it is based on, or beside any other one.

    Kernels of one source are matched by their nodes, those of two sources by what their nodes compute. `differences`
    lists what else differs, such as the device. Read it before any time.
    """
    return json_answer(await derived(readings.compared, *await service.sides(id, other)))


@router.delete(
    "/{id}",
    response_model=Report,
    responses={
        200: {"description": "It is over.", "content": report_answer("cancelled")},
        202: {"model": Report, "description": "It is about to end.", "content": report_answer("running")},
        **problem_answers(403, 404, 422),
    },
)
async def cancel(request: Request, id: Id, service: Service, follower: Follower = None) -> Response:
    """Cancels an exploration that waits or runs, and answers with its report. A finished one does not change.

    With `follower` it continues if another client waits for it or follows it here. Clients with the same request share
    one exploration, and none of them ends it for the others."""
    exploration = await service.cancel(id, follower)
    return _json(request, exploration, 200 if exploration.is_done else 202, {"Cache-Control": "no-store"})


_FULL = {
    "all": "Waiting already: {}",
    "own": "Waiting already: {} of yours",
    "running": "Waiting or running: {} of yours",
}


def _queue_full(full: QueueFull) -> Problem:
    found = _FULL[full.of].format(counted(full.number, "exploration"))
    again = counted(max(1, math.ceil(full.seconds)), "second")
    return too_many(f"{found}, which is as many as may. Try again in {again}.", full.seconds)


def _json(request: Request, exploration: Exploration, status: int, headers: dict[str, str]) -> Response:
    # The body is JSON already, checked when it came from the worker: it is not read and written again.
    if exploration.stored is not None:
        return whole_answer(exploration.stored, status, headers, request.headers.get("accept-encoding"))
    return Response(exploration.so_far, status, headers, media_type="application/json")
