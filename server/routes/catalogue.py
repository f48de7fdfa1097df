"""What does not depend on a snippet: versions, devices, examples, reasons, and colours for code."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from compiler.options import DEVICE_MODELS, LARGEST_GROUP, RULES
from compiler.report import REPORT_VERSION
from server import gallery
from server.colouring import coloured_soon
from server.highlight import MAX_BYTES, Theme, plain_lines, style_sheet
from server.identity import compiler_version
from server.problems import Problem, problem_answers
from server.reasons import ReasonEntry, ReasonPage, reasons, with_page
from server.requests import HighlightAnswer, HighlightRequest
from server.routes.health import Web
from server.wire.messages import DeviceFacts, WorkerIdentity

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
_DEVICE: JsonDict = {"name": "H200", "kind": "cuda", "target": "sm_90", "facts": {"multiprocessors": 132}}


class Version(BaseModel):
    """The running version. `worker` is the profile of explorations that name no device. It is declared, whether or not
    a worker is there."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"compiler": "0.2.0", "report": 3, "build": "0123456789abcdef", "worker": _PROFILE}
        }
    )

    compiler: str = Field(description="Version of the product.", examples=["0.2.0"])
    report: int = Field(description="Version of the report's form; it rises with each change.", examples=[3])
    build: str = Field(description="This build of the compiler, a part of every id.", examples=["0123456789abcdef"])
    worker: WorkerIdentity = Field(description="The profile of explorations that name no device.")


class Devices(BaseModel):
    """`here` is the device that explorations run on; `known` are all that kernels can be generated for."""

    model_config = ConfigDict(json_schema_extra={"example": {"here": _PROFILE, "known": [_DEVICE]}})

    here: WorkerIdentity = Field(description="The device of explorations that name none.")
    known: tuple[DeviceFacts, ...] = Field(
        description="Devices that kernels can be generated for; empty until a worker has reported them."
    )


class Choices(BaseModel):
    """The names of decisions that options can change."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"rules": ["inline", "horizontal"], "device_models": ["H200", "A100"], "largest_group": 512}
        }
    )

    rules: tuple[str, ...] = Field(description="Names for `rules_off`.", examples=[["inline", "horizontal"]])
    device_models: tuple[str, ...] = Field(description="Names for `device_model`.", examples=[["H200", "A100"]])
    largest_group: int = Field(description="Default of `largest_group`.", examples=[512])


@router.get("/version")
async def version(web: Web) -> Version:
    """The running version and its device."""
    return Version(compiler=compiler_version(), report=REPORT_VERSION, build=web.build, worker=web.profiles.declared[0])


@router.get("/devices")
async def devices(web: Web) -> Devices:
    """The device that explorations run on, and all that kernels can be generated for, once a worker has reported
    them."""
    known = next((device.facts for device in web.executor.devices() if device.facts), ())
    return Devices(here=web.profiles.declared[0], known=known)


@router.get("/choices")
async def choices() -> Choices:
    """The names for `rules_off` and `device_model`, and the default of `largest_group`."""
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
    """A reason with its page: its meaning, an example that gives it, and what to do."""
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
    """Source as one piece of HTML a line, with the classes of /api/v1/highlight.css. It has no colours if they take too
    long to make."""
    size = len(asked.source.encode("utf-8", errors="replace"))
    if size > MAX_BYTES:
        raise Problem(413, f"The source has {size} bytes; at most {MAX_BYTES} are coloured. Send a part of it.")
    lines = await coloured_soon(asked.source, asked.language)
    return HighlightAnswer(lines=plain_lines(asked.source) if lines is None else lines)


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
    """The style sheet for the HTML of `/api/v1/highlight`."""
    return Response(style_sheet(theme), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})
