"""The documentation site under /docs/: the files that `tools/documentation.py` builds from `docs/`.

An address may leave `.html` out, so that /docs/api is the reference of the API.
"""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from server.routes.page import Files

FOLDER = Path(__file__).parents[1] / "documentation"
NOT_BUILT = "The documentation is not built: run `make docs`, then load this address again.\n"
CACHE = "no-cache"

_NAME = re.compile(r"(?:[\w-][\w.-]*/)*[\w-][\w.-]*")


def install(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serves the site in `folder`."""
    router = APIRouter(include_in_schema=False)
    files = Files(folder)

    async def without_slash() -> Response:
        return RedirectResponse("docs/", status_code=308)

    async def page(request: Request, name: str = "") -> Response:
        wanted = name or "index.html"
        if _NAME.fullmatch(wanted):
            for path in (wanted, f"{wanted}.html"):
                if (found := await files.answer(request, path, CACHE)) is not None:
                    return found
        if not (folder / "index.html").is_file():
            return PlainTextResponse(NOT_BUILT, status_code=503)
        raise HTTPException(404)

    router.add_api_route("/docs", without_slash, methods=["GET"])
    router.add_api_route("/docs/{name:path}", page, methods=["GET"])
    app.include_router(router)
