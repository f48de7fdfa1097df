"""What does not depend on a snippet: versions, devices, examples, reasons, and colours for code."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from compiler.options import DEVICE_MODELS, LARGEST_GROUP, RULES
from compiler.report import REPORT_VERSION
from server import gallery
from server.highlight import MAX_BYTES, Theme, highlight_lines, style_sheet
from server.identity import compiler_version
from server.problems import Problem, problem_answers
from server.reasons import ReasonEntry, ReasonPage, reasons, with_page
from server.requests import HighlightAnswer, HighlightRequest
from server.routes.health import Web
from server.wire.messages import DeviceFacts, WorkerIdentity

router = APIRouter(prefix="/api/v1", tags=["catalogue"])


class Version(BaseModel):
    """What is running. `worker` is the profile that explorations run with where they name no device; it is declared,
    whether or not a worker is there."""

    compiler: str
    report: int
    build: str
    worker: WorkerIdentity


class Devices(BaseModel):
    """`here` is the device that explorations run on; `known` are all that kernels can be generated for."""

    here: WorkerIdentity
    known: tuple[DeviceFacts, ...]


class Choices(BaseModel):
    """What may be decided otherwise, by name."""

    rules: tuple[str, ...]
    device_models: tuple[str, ...]
    largest_group: int


@router.get("/version")
async def version(web: Web) -> Version:
    """What is running, and for which device."""
    return Version(compiler=compiler_version(), report=REPORT_VERSION, build=web.build, worker=web.profiles.declared[0])


@router.get("/devices")
async def devices(web: Web) -> Devices:
    """The device that explorations run on, and all that kernels can be generated for, once a worker has said so."""
    known = next((device.facts for device in web.executor.devices() if device.facts), ())
    return Devices(here=web.profiles.declared[0], known=known)


@router.get("/choices")
async def choices() -> Choices:
    """What an exploration may name in `rules_off` and `device_model`, and what `largest_group` is by default."""
    return Choices(rules=RULES, device_models=DEVICE_MODELS, largest_group=LARGEST_GROUP)


@router.get("/examples")
async def examples() -> list[gallery.Example]:
    return list(gallery.examples())


@router.get("/reasons", responses=problem_answers(503))
async def list_reasons() -> list[ReasonEntry]:
    """Every reason that a decision may name."""
    return list((await _reasons()).values())


@router.get("/reasons/{id}", responses=problem_answers(404, 503))
async def one_reason(id: str) -> ReasonPage:
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


@router.post("/highlight", responses=problem_answers(413, 422))
async def highlight(asked: HighlightRequest) -> HighlightAnswer:
    """Source as one piece of HTML a line; its classes are those of /api/v1/highlight.css."""
    size = len(asked.source.encode("utf-8", errors="replace"))
    if size > MAX_BYTES:
        raise Problem(413, f"The source has {size} bytes; at most {MAX_BYTES} are coloured. Send a part of it.")
    return HighlightAnswer(lines=await asyncio.to_thread(highlight_lines, asked.source, asked.language))


@router.get("/highlight.css", response_class=Response)
async def highlight_css(theme: Annotated[Theme, Query()] = "light") -> Response:
    return Response(style_sheet(theme), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})
