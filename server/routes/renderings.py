"""The forms of one exploration that people read, save and send: Markdown, HTML, and files that run one kernel."""

from __future__ import annotations

import contextlib
import hashlib
import re

from fastapi import APIRouter, Response

from compiler.report import Report
from compiler.reproducer import NoReproducerError, reproducer
from server.beside import comparison_as_markdown
from server.chrome_trace import NOT_RECORDED, ChromeTrace, chrome_trace
from server.colouring import COLOURING
from server.derived import derived
from server.document import document, policy
from server.explorations import Exploration, Explorations, no_kernel
from server.plain_text import visible
from server.problems import Problem, problem_answers
from server.routes.parameters import GraphName, Id, KernelLanguage, KernelName, KnownTag, Service
from server.stored_answers import IMMUTABLE
from server.summary import markdown

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


@router.get("/{id}.trace.json", responses=problem_answers(404, 409, 422))
async def read_trace(id: Id, service: Service) -> ChromeTrace:
    """The record of torch's profiler for one call of eager and one of our kernels, as a Chrome trace for Perfetto.
    It exists if the exploration had the option `trace`."""
    report = await service.report(id)
    try:
        return await derived(id, (LookupError,), chrome_trace, report)
    except LookupError:
        raise Problem(409, f"Of exploration {id} {NOT_RECORDED}.") from None


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
    report = await service.report(id)
    try:
        text = await derived(id, (KeyError, NoReproducerError), reproducer, report, name, graph, language)
    except KeyError:
        raise Problem(404, await derived(id, (), no_kernel, report, name, graph)) from None
    except NoReproducerError as reason:
        raise Problem(409, f"The kernel {name[:200]} cannot be run alone: {reason}") from None
    answer = unless_known(visible(text).encode(), "text/x-python", exploration, if_none_match)
    file = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100]
    answer.headers["Content-Disposition"] = f'attachment; filename="{file}.py"'
    return answer


async def rendered(service: Explorations, id: str, media_type: str, known_tags: str | None) -> Response:
    """The exploration as "text/markdown" or "text/html". Raises `Problem` 404."""
    exploration = await service.find(id)
    report = await service.report(id)
    beside = ""
    if report.based_on is not None and exploration.is_done:
        # The first may have been removed from the store since.
        with contextlib.suppress(Problem):
            beside = "\n" + comparison_as_markdown(await service.comparison(id, None))
    body = await derived(id, (), _body, report, exploration.body, beside, media_type)
    return unless_known(body, media_type, exploration, known_tags)


def _body(report: Report, json_body: bytes, beside: str, media_type: str) -> bytes:
    text = markdown(report) + beside
    whole = document(report, text, json_body, COLOURING.lines) if media_type == "text/html" else text
    return whole.encode()


def unless_known(body: bytes, media_type: str, exploration: Exploration, known_tags: str | None) -> Response:
    """`body` as the answer, or 304 where the client has it already."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    cache = IMMUTABLE if exploration.is_reusable else "no-cache"
    headers = {"ETag": tag, "Cache-Control": cache, "Vary": "Accept"}
    known = {part.strip().removeprefix("W/") for part in (known_tags or "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    if media_type == "text/html":
        headers["Content-Security-Policy"] = f"{policy()}; frame-ancestors 'none'; sandbox"
    return Response(body, headers=headers, media_type=media_type)
