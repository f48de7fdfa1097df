"""For whoever runs the service: is it alive, can it take work, how is it doing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from server.metrics import CONTENT_TYPE
from server.problems import Problem, problem_answers
from server.state import WebState
from server.wire.messages import GpuHealth

router = APIRouter(tags=["health"])


class WorkerHealth(BaseModel):
    """One worker, as web sees it."""

    name: str = Field(description="Its address: a socket's path, or a node and its device.")
    state: str = Field(description='"ready", or why it is not.')
    device: str = Field(description='"cpu" or "cuda"; empty while unknown.')
    device_name: str = Field(description="Name of the device; empty while unknown.")
    slots: int = Field(description="Explorations that it runs at the same time.")
    free: int = Field(description="Slots that are free now.")
    tier: str | None = Field(
        description='What confines a snippet: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing.'
    )
    isolation: list[str] = Field(description="The layers of that in force, as a trial job found them.")
    restarts: int = Field(description="Restarts of the worker or of its zygote.")
    gpu: GpuHealth | None = Field(default=None, description="State of its GPU; null if unknown.")


class TaskHealth(BaseModel):
    """One of web's background tasks."""

    name: str = Field(description="Its name.")
    state: str = Field(description='"works", or why it failed last.')
    restarts: int = Field(description="Restarts after a failure.")


class Health(BaseModel):
    """The state of the service. `worker` and `isolation` are those of one worker, `restarts` those of all."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "status": "ok",
                "worker": "ready",
                "isolation": ["own network namespace", "resource limits"],
                "restarts": 0,
                "database": "writable",
                "build": "0123456789abcdef",
                "workers": [],
                "tasks": [{"name": "dispatcher", "state": "works", "restarts": 0}],
                "warnings": [],
            }
        }
    )

    status: str = Field(description='"ok": the service answers.')
    worker: str = Field(description='"ready" if a worker is, else why none is.')
    isolation: list[str] | None = Field(description="What confines a snippet; null until a worker has reported it.")
    restarts: int = Field(description="Restarts of all workers.")
    database: str = Field(description='"writable", or why it is not.')
    build: str = Field(description="This build of the compiler, a part of every id.")
    workers: list[WorkerHealth] = Field(description="Every known worker, ready or not.")
    tasks: list[TaskHealth] = Field(description="Background tasks.")
    warnings: list[str] = Field(description="Settings that make it unsafe, a sentence each.")


class Ready(BaseModel):
    """New explorations can be accepted and finished."""

    model_config = ConfigDict(json_schema_extra={"example": {"status": "ready", "device": "NVIDIA H200"}})

    status: str = Field(description='"ready".')
    device: str = Field(description='Name of a device that is ready; "" of a read-only service without a worker.')


async def web_state(request: Request) -> WebState:
    found: WebState = request.app.state.web
    return found


Web = Annotated[WebState, Depends(web_state)]


@router.get("/healthz")
async def health(web: Web) -> Health:
    """The service answers, with the state of its workers, database and background tasks."""
    devices = web.executor.devices()
    ready = next((device for device in devices if device.ready), None)
    told = ready or (devices[0] if devices else None)
    database = await web.database_problem()
    return Health(
        status="ok",
        worker="ready" if ready else web.worker_problem(),
        isolation=list(told.isolation) if told is not None and told.tier is not None else None,
        restarts=sum(device.restarts for device in devices),
        database=database or "writable",
        build=web.build,
        workers=[
            WorkerHealth(
                name=device.name,
                state="ready" if device.ready else device.problem or "starting",
                device=device.profile.device if device.tier else "",
                device_name=device.profile.device_name,
                slots=device.slots,
                free=device.free,
                tier=device.tier,
                isolation=list(device.isolation),
                restarts=device.restarts,
                gpu=device.gpu,
            )
            for device in devices
        ],
        tasks=[
            TaskHealth(name=task.name, state=task.problem or "works", restarts=task.restarts)
            for task in web.tasks.states.values()
        ],
        warnings=web.warnings,
    )


@router.get("/readyz", responses=problem_answers(503))
async def ready(request: Request, web: Web) -> Ready:
    """200 while new explorations can be accepted and finished: a worker is ready, and the database can be written. A
    read-only service accepts none, and needs no worker."""
    found = next((device for device in web.executor.devices() if device.ready), None)
    needs_worker = found is None and not request.app.state.read_only
    problems = [f"no worker is ready: {web.worker_problem()}"] if needs_worker else []
    database = await web.database_problem()
    if database is not None:
        problems.append(f"the database cannot be written: {database}")
    problems += web.tasks.problems()
    if problems:
        raise Problem(
            503, f"New explorations cannot be finished now: {'; '.join(problems)}.", headers={"Retry-After": "2"}
        )
    return Ready(status="ready", device="" if found is None else found.profile.device_name)


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(web: Web) -> Response:
    web.metrics.observe_devices(web.executor.devices())
    return Response(web.metrics.text(), headers={"Content-Type": CONTENT_TYPE})
