"""What the addresses of explorations take: each parameter with its limits, a description and an example."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Query
from fastapi import Path as PathParameter

from server.explorations import Explorations
from server.routes.health import Web


async def explorations(web: Web) -> Explorations:
    return web.explorations


Service = Annotated[Explorations, Depends(explorations)]

Id = Annotated[
    str,
    PathParameter(description="Id of an exploration.", min_length=1, max_length=64, examples=["0123456789abcdef0123"]),
]
OtherId = Annotated[
    str | None,
    Query(
        alias="with",
        description="Id of another one, of the same source; by default the one that it is based on.",
        min_length=1,
        max_length=64,
        examples=["3210fedcba9876543210"],
    ),
]
NodeName = Annotated[
    str,
    Query(
        description="A loop, a node of either FX graph, or a kernel.", min_length=1, max_length=200, examples=["buf0"]
    ),
]
Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end.", examples=[30])]
KnownTag = Annotated[
    str | None,
    Header(
        description="ETags that the client has; where one is still right the answer is 304.",
        examples=['"0123456789abcdef0123456789abcdef"'],
    ),
]
LastEventId = Annotated[
    str | None,
    Header(description="The last event that the client has: what follows it is sent.", examples=["1-3"]),
]
Accept = Annotated[str | None, Header(include_in_schema=False)]
"""OpenAPI tells of it by the media types of the answers."""
