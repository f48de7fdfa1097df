"""The forms of one exploration that people read, save and send: Markdown, HTML, and files that run one kernel."""

from __future__ import annotations

import contextlib
import re

from fastapi import APIRouter, Response

from server import readings
from server.chrome_trace import ChromeTrace
from server.derived import derived
from server.document import policy
from server.explorations import Exploration, Explorations
from server.problems import Problem, problem_answers
from server.readings import Rendered
from server.routes.parameters import GraphName, Id, KernelLanguage, KernelName, KnownTag, Service, json_answer
from server.stored_answers import IMMUTABLE

router = APIRouter(prefix="/api/v1/explorations", tags=["explorations"])


@router.get(
    "/{id}.md",
    response_class=Response,
    responses={
        200: {"content": {"text/markdown": {"schema": {"type": "string"}, "example": "# Exploration ...\n"}}},
        304: {"description": "Unchanged."},
        **problem_answers(404, 409, 422),
    },
)
async def read_as_markdown(id: Id, service: Service, if_none_match: KnownTag = None) -> Response:
    """The report as Markdown. If it is based on another one, the two are also shown side by side.

    It has no raw HTML, no links, and no invisible characters, whatever the snippet contains.
    """
    return await rendered(service, id, "text/markdown", if_none_match)


@router.get(
    "/{id}.html",
    response_class=Response,
    responses={
        200: {"content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>..."}}},
        304: {"description": "Unchanged."},
        **problem_answers(404, 409, 422),
    },
)
async def read_as_html(id: Id, service: Service, if_none_match: KnownTag = None) -> Response:
    """The report as one self-contained HTML file, without scripts, to keep or send.

    The report itself is in the element with the id `report`, as JSON.
    """
    return await rendered(service, id, "text/html", if_none_match)


@router.get("/{id}.trace.json", response_model=ChromeTrace, responses=problem_answers(404, 409, 422))
async def read_trace(id: Id, service: Service) -> Response:
    """The record of torch's profiler for one call of eager and one of our kernels, as a Chrome trace for Perfetto.
    It exists if the exploration had the option `trace`."""
    return json_answer(await derived(readings.trace, await service.unread(id)))


@router.get(
    "/{id}/kernels/{name}.py",
    response_class=Response,
    responses={
        200: {"content": {"text/x-python": {"schema": {"type": "string"}, "example": "import torch\n"}}},
        304: {"description": "Unchanged."},
        **problem_answers(404, 409, 422),
    },
)
async def read_kernel(
    id: Id,
    name: KernelName,
    service: Service,
    graph: GraphName = None,
    language: KernelLanguage = None,
    if_none_match: KnownTag = None,
) -> Response:
    """One kernel as a Python file that runs alone, with plain torch and Triton or a C++ compiler.

    It makes the kernel's inputs, launches it, compares it with PyTorch's own operators and times it. The snippet's
    process wrote the code in it, so run it only where you would run the snippet.
    """
    exploration = await service.find(id)
    text = await derived(readings.kernel_file, exploration.unread, name, graph, language)
    answer = unless_known(text, "text/x-python", exploration, if_none_match)
    file = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100]
    answer.headers["Content-Disposition"] = f'attachment; filename="{file}.py"'
    return answer


async def rendered(service: Explorations, id: str, media_type: str, known_tags: str | None) -> Response:
    """The exploration as "text/markdown" or "text/html". Raises `Problem` 404."""
    exploration = await service.find(id)
    beside = ""
    if exploration.based_on is not None and exploration.is_done:
        # The first may have been removed from the store since.
        with contextlib.suppress(Problem):
            beside = "\n" + await derived(readings.compared_as_markdown, *await service.sides(id, None))
    make = readings.page if media_type == "text/html" else readings.text
    text = await derived(make, exploration.unread, beside)
    return unless_known(text, media_type, exploration, known_tags)


def unless_known(text: Rendered, media_type: str, exploration: Exploration, known_tags: str | None) -> Response:
    """`text` as the answer, or 304 where the client has it already."""
    tag = f'"{text.tag}"'
    cache = IMMUTABLE if exploration.is_reusable else "no-cache"
    headers = {"ETag": tag, "Cache-Control": cache, "Vary": "Accept"}
    known = {part.strip().removeprefix("W/") for part in (known_tags or "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    if media_type == "text/html":
        headers["Content-Security-Policy"] = f"{policy()}; frame-ancestors 'none'; sandbox"
    return Response(text.body, headers=headers, media_type=media_type)
