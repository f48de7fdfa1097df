"""What does not depend on a snippet: versions, devices, examples, reasons, and colours for code."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from compiler.options import DEVICE_MODELS, LARGEST_GROUP, RULES
from compiler.report import REPORT_VERSION
from server import gallery
from server.highlight import MAX_BYTES, Theme, highlight_lines, style_sheet
from server.identity import WorkerIdentity, compiler_version
from server.problems import Problem, problem_answers
from server.reasons import ReasonEntry, ReasonPage, reasons, with_page
from server.requests import HighlightAnswer, HighlightRequest
from server.worker.messages import DeviceFacts
from server.worker_process import WorkerProcess

router = APIRouter(prefix="/api/v1", tags=["catalogue"])


ReasonId = Annotated[
    str,
    PathParameter(
        description="Id of a reason, as decisions name it.",
        max_length=100,
        pattern=r"^[\w.]+$",
        examples=["shape.numel"],
    ),
]


_PROFILE: JsonDict = {
    "python": "3.11.9",
    "torch": "2.13.0",
    "triton": "3.7.1",
    "device": "cuda",
    "device_name": "NVIDIA H200",
}
_DEVICE: JsonDict = {"name": "H200", "kind": "cuda", "target": "sm_90", "facts": {"sm_count": 132}}


class Version(BaseModel):
    """What is running. `worker` is null while the worker is still importing its libraries."""

    model_config = ConfigDict(json_schema_extra={"example": {"compiler": "0.2.0", "report": 3, "worker": _PROFILE}})

    compiler: str = Field(description="Version of the product.", examples=["0.2.0"])
    report: int = Field(description="Version of the report's form; it rises with each change.", examples=[3])
    worker: WorkerIdentity | None = Field(description="What the worker runs on.")


class Devices(BaseModel):
    """`here` is the device that explorations run on; `known` are all that kernels can be generated for."""

    model_config = ConfigDict(json_schema_extra={"example": {"here": _PROFILE, "known": [_DEVICE]}})

    here: WorkerIdentity | None = Field(description="What explorations run on; null while the worker starts.")
    known: tuple[DeviceFacts, ...] = Field(description="What kernels can be generated for; empty until then.")


class Choices(BaseModel):
    """What may be decided otherwise, by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"rules": ["inline", "horizontal"], "device_models": ["H200", "A100"], "largest_group": 512}
        }
    )

    rules: tuple[str, ...] = Field(description="What `rules_off` may name.", examples=[["inline", "horizontal"]])
    device_models: tuple[str, ...] = Field(description="What `device_model` may name.", examples=[["H200", "A100"]])
    largest_group: int = Field(description="What `largest_group` is where nothing else is asked for.", examples=[512])


@router.get("/version")
async def version(request: Request) -> Version:
    """Versions of the product, of the report's form, and of what the worker runs on."""
    worker: WorkerProcess = request.app.state.worker
    identity = worker.hello.identity if worker.hello is not None else None
    return Version(compiler=compiler_version(), report=REPORT_VERSION, worker=identity)


@router.get("/devices")
async def devices(request: Request) -> Devices:
    """The device that explorations run on, and every device that kernels can be generated for."""
    worker: WorkerProcess = request.app.state.worker
    if worker.hello is None:
        return Devices(here=None, known=())
    return Devices(here=worker.hello.identity, known=worker.hello.devices)


@router.get("/choices")
async def choices() -> Choices:
    """What an exploration may name in `rules_off` and `device_model`, and what `largest_group` is by default."""
    return Choices(rules=RULES, device_models=DEVICE_MODELS, largest_group=LARGEST_GROUP)


@router.get("/examples")
async def examples() -> list[gallery.Example]:
    """The examples that come with the product, from the first idea to the last."""
    return list(gallery.examples())


@router.get("/reasons", responses=problem_answers(503))
async def list_reasons() -> list[ReasonEntry]:
    """Every reason that a decision may name."""
    return list((await _reasons()).values())


@router.get("/reasons/{id}", responses=problem_answers(404, 422, 503))
async def one_reason(id: ReasonId) -> ReasonPage:
    """A reason with its page: what it means, an example that leaves it, and what to do."""
    found = (await _reasons()).get(id)
    if found is None:
        raise Problem(404, f"There is no reason {id!r}; GET /api/v1/reasons lists them all.")
    return await asyncio.to_thread(with_page, found)


async def _reasons() -> dict[str, ReasonEntry]:
    try:
        return await asyncio.to_thread(reasons)
    except ImportError as missing:
        raise Problem(503, f"The list of reasons cannot be loaded: {missing}.") from None


@router.post("/highlight", responses=problem_answers(400, 403, 413, 422))
async def highlight(asked: HighlightRequest) -> HighlightAnswer:
    """Source as one piece of HTML a line; its classes are those of /api/v1/highlight.css."""
    size = len(asked.source.encode("utf-8", errors="replace"))
    if size > MAX_BYTES:
        raise Problem(413, f"The source has {size} bytes; at most {MAX_BYTES} are coloured. Send a part of it.")
    return HighlightAnswer(lines=await asyncio.to_thread(highlight_lines, asked.source, asked.language))


@router.get(
    "/highlight.css",
    response_class=Response,
    responses={
        200: {"content": {"text/css": {"schema": {"type": "string"}, "example": ".highlight .k { color: #A90D91 }"}}},
        **problem_answers(422),
    },
)
async def highlight_css(
    theme: Annotated[Theme, Query(description="For a light or a dark page.", examples=["light"])] = "light",
) -> Response:
    """The style sheet for what `/api/v1/highlight` answers."""
    return Response(style_sheet(theme), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})
