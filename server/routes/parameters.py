"""What the addresses of explorations take and answer: each parameter with its limits, a description and an example,
and an example of a report."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, Header, Query, Response
from fastapi import Path as PathParameter

from compiler.options import CodeTarget
from compiler.report import Report, Summary
from server.explorations import Explorations
from server.requests import EXAMPLE_SOURCE
from server.routes.health import Web


async def explorations(web: Web) -> Explorations:
    return web.explorations


CUT_HEADER = "X-Cut-At"
Item = TypeVar("Item")

Service = Annotated[Explorations, Depends(explorations)]

Id = Annotated[
    str,
    PathParameter(description="Id of an exploration.", min_length=1, max_length=64, examples=["0123456789abcdef0123"]),
]
OtherId = Annotated[
    str | None,
    Query(
        alias="with",
        description="Id of another one; by default the one that it is based on.",
        min_length=1,
        max_length=64,
        examples=["3210fedcba9876543210"],
    ),
]
NodeName = Annotated[
    str,
    Query(
        description="A loop, a node of either FX graph, or a kernel.", min_length=1, max_length=200, examples=["exp"]
    ),
]
KernelName = Annotated[
    str,
    PathParameter(
        description="A kernel's name.", min_length=1, max_length=200, examples=["fused_amax_sub_exp_sum_div"]
    ),
]
GraphName = Annotated[
    str | None,
    Query(
        description="Its graph; by default the first one that has a kernel of this name.",
        min_length=1,
        max_length=200,
        examples=["graph_0"],
    ),
]
KernelLanguage = Annotated[
    Literal["cpp", "triton"] | None,
    Query(
        description='"triton" selects the GPU kernel beside one in C++; by default the one that was run.',
        examples=["triton"],
    ),
]
KernelCompiler = Annotated[
    Literal["ours", "peer"],
    Query(description='"peer" selects a kernel of TorchInductor, if the report has some.', examples=["ours"]),
]
WantedTarget = Annotated[
    CodeTarget | None,
    Query(
        description='The target: a GPU such as sm_80, sm_90, sm_100 or gfx942, or "host" for a C++ kernel; by '
        "default the report's own target.",
        examples=["sm_90"],
    ),
]
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end.", examples=[30])]
KnownTag = Annotated[
    str | None,
    Header(
        description="ETags that the client has; if one is still valid the answer is 304.",
        examples=['"0123456789abcdef0123456789abcdef"'],
    ),
]
LastEventId = Annotated[
    str | None,
    Header(description="The last event that the client has; later events are sent.", examples=["1-3"]),
]
Follower = Annotated[
    str | None,
    Query(
        description="A name that the client chooses for one stream of events, and repeats when it cancels.",
        min_length=1,
        max_length=64,
        examples=["c0ffee00-reader-1"],
    ),
]
Accept = Annotated[str | None, Header(include_in_schema=False)]
"""OpenAPI tells of it by the media types of the answers."""


def report_answer(status: str) -> dict[str, Any]:
    """What OpenAPI shows of an answer with a report of this status."""
    verdict = "5 eager kernels became 1 kernel." if status == "ok" else ""
    report = Report.model_validate({"id": "0123456789abcdef0123", "source": EXAMPLE_SOURCE, "status": status})
    report = report.model_copy(update={"summary": Summary(verdict=verdict)})
    return {"application/json": {"example": report.model_dump(mode="json")}}


def json_answer(body: bytes, headers: dict[str, str] | None = None) -> Response:
    """What was derived from a report, which is JSON already."""
    return Response(body, headers=headers, media_type="application/json")


def cut(found: list[Item], most: int, response: Response) -> list[Item]:
    """The first `most` of what was found; where there are more, a header of the answer says that it was cut."""
    if len(found) > most:
        response.headers[CUT_HEADER] = str(most)
    return found[:most]


def cut_at(most: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer that `cut` may shorten."""
    told = {"description": f"{most}, where there are more than so many.", "schema": {"type": "integer"}}
    return {200: {"description": "Successful Response", "headers": {CUT_HEADER: told}}}
