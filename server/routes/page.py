"""The page: one HTML file for every address that a person can open, and the files that it loads."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, PlainTextResponse, Response

NOT_BUILT = "The page is not built: run `npm ci && npm run build` in the folder `web`, then load this address again.\n"


def install(app: FastAPI, folder: Path) -> None:
    """Serves the page in `folder`. It is looked for at each request, so it may be built while the service runs."""
    router = APIRouter(include_in_schema=False)

    async def page() -> Response:
        index = folder / "index.html"
        if not index.is_file():
            return PlainTextResponse(NOT_BUILT, status_code=503)
        # The files that it names carry a hash of their content; the page itself must be asked for anew.
        return FileResponse(index, headers={"Cache-Control": "no-cache"})

    async def page_on(id: str) -> Response:
        return await page()

    router.add_api_route("/", page, methods=["GET"])
    router.add_api_route("/x/{id}", page_on, methods=["GET"])
    # The same page for the frame of another site; `security` says which sites may show it.
    router.add_api_route("/embed/{id}", page_on, methods=["GET"])
    app.include_router(router)
    app.frontend("/", directory=folder, fallback=None, check_dir=False)
