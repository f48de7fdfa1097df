"""For whoever runs the service: is it alive, can it take work, how is it doing."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from server.metrics import CONTENT_TYPE, Metrics
from server.problems import Problem, problem_answers
from server.worker_process import WorkerProcess

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """`isolation` lists what confines a snippet on this machine, as a trial job found it; null until it has run."""

    status: str
    worker: str
    isolation: list[str] | None
    restarts: int


class Ready(BaseModel):
    status: str
    device: str


@router.get("/healthz")
async def health(request: Request) -> Health:
    """The service itself answers; how its worker does is told beside it."""
    worker: WorkerProcess = request.app.state.worker
    state = "ready" if worker.hello is not None else worker.problem or "starting"
    isolation = list(worker.hello.isolation) if worker.hello is not None else None
    return Health(status="ok", worker=state, isolation=isolation, restarts=worker.restarts)


@router.get("/readyz", responses=problem_answers(503))
async def ready(request: Request) -> Ready:
    """200 once the worker has imported its libraries and can take a job."""
    worker: WorkerProcess = request.app.state.worker
    if worker.hello is None:
        reason = worker.problem or "it is still importing its libraries"
        raise Problem(503, f"The worker cannot take jobs yet: {reason}.", headers={"Retry-After": "2"})
    return Ready(status="ready", device=worker.hello.identity.device_name)


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(request: Request) -> Response:
    counted: Metrics = request.app.state.metrics
    worker: WorkerProcess = request.app.state.worker
    counted.worker_ready.set(worker.hello is not None)
    counted.worker_restarts.set(worker.restarts)
    return Response(counted.text(), headers={"Content-Type": CONTENT_TYPE})
