"""The page: one HTML file for every address that a person can open, and the files that it loads.

The build leaves each file in three forms: as it is, as gzip (`.gz`) and as Brotli (`.br`). A client gets the smallest
that it takes, and nothing is compressed here. Names under `/assets` carry a hash of the content, so what stands at such
an address never changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException

from server.negotiation import takes_encoding

NOT_BUILT = "The page is not built: run `npm ci && npm run build` in the folder `web`, then load this address again.\n"
IMMUTABLE = "public, max-age=31536000, immutable"
#: The smallest first.
ENCODINGS = (("br", ".br"), ("gzip", ".gz"))

_NAME = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class _Kept:
    """A file that was read, and what tells that it has not changed since."""

    modified_ns: int
    body: bytes
    tag: str


class Files:
    """The files of the page. Each is looked for at every request, so the page may be built while the service runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[Path, _Kept] = {}

    async def answer(self, request: Request, name: str, cache: str) -> Response | None:
        """The file in the form that the client takes; None where there is no such file."""
        return await asyncio.to_thread(self._answer, request, name, cache)

    def _answer(self, request: Request, name: str, cache: str) -> Response | None:
        plain = self._read(self._folder / name)
        if plain is None:
            return None
        kept, headers = plain, {"Cache-Control": cache, "Vary": "Accept-Encoding"}
        for encoding, suffix in ENCODINGS:
            smaller = self._read(self._folder / (name + suffix))
            if smaller is not None and takes_encoding(encoding, request.headers.get("accept-encoding")):
                kept = smaller
                headers["Content-Encoding"] = encoding
                break
        headers["ETag"] = f'"{kept.tag}"'
        if kept.tag in (request.headers.get("if-none-match") or ""):
            headers.pop("Content-Encoding", None)
            return Response(status_code=304, headers=headers)
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(kept.body, media_type=media_type, headers=headers)

    def _read(self, path: Path) -> _Kept | None:
        try:
            modified_ns = path.stat().st_mtime_ns
            known = self._kept.get(path)
            if known is not None and known.modified_ns == modified_ns:
                return known
            body = path.read_bytes()
        except OSError:
            self._kept.pop(path, None)
            return None
        kept = self._kept[path] = _Kept(modified_ns, body, hashlib.sha256(body).hexdigest()[:20])
        return kept


def install(app: FastAPI, folder: Path) -> None:
    """Serves the page in `folder`."""
    router = APIRouter(include_in_schema=False)
    files = Files(folder)

    async def page(request: Request) -> Response:
        # The files that it names carry a hash of their content; the page itself must be asked for anew.
        found = await files.answer(request, "index.html", "no-cache")
        return found or PlainTextResponse(NOT_BUILT, status_code=503)

    async def page_on(request: Request, id: str) -> Response:
        return await page(request)

    async def file(request: Request, name: str, folder: str = "", cache: str = "no-cache") -> Response:
        found = await files.answer(request, folder + name, cache) if _NAME.fullmatch(name) else None
        if found is None:
            raise HTTPException(404)
        return found

    async def asset(request: Request, name: str) -> Response:
        return await file(request, name, "assets/", IMMUTABLE)

    async def icon(request: Request) -> Response:
        return await file(request, "favicon.svg")

    router.add_api_route("/", page, methods=["GET"])
    router.add_api_route("/x/{id}", page_on, methods=["GET"])
    # The same page for the frame of another site; `security` says which sites may show it.
    router.add_api_route("/embed/{id}", page_on, methods=["GET"])
    router.add_api_route("/assets/{name}", asset, methods=["GET"])
    router.add_api_route("/favicon.svg", icon, methods=["GET"])
    app.include_router(router)
