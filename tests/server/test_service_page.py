"""How the page and streams of events come over the wire: small, kept by the browser, and at once."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from starlette.responses import StreamingResponse
from starlette.types import Message, Scope

from server.compressed_events import CompressedEvents
from server.routes import page

SCRIPT = b"console.log('page');" * 200


@pytest.fixture
def static(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("not a file of the page")
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(b"<!doctype html>")
    (folder / "assets" / "index-0a1b2c3d.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-0a1b2c3d.js.gz").write_bytes(gzip.compress(SCRIPT))
    (folder / "assets" / "index-0a1b2c3d.js.br").write_bytes(b"as Brotli")
    return folder


@pytest_asyncio.fixture
async def client(static: Path) -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI()
    page.install(app, static)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as opened:
        yield opened


async def raw(client: httpx2.AsyncClient, path: str, **headers: str) -> tuple[httpx2.Response, bytes]:
    async with client.stream("GET", path, headers={"accept-encoding": "identity", **headers}) as answer:
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


@pytest.mark.asyncio
async def test_an_asset_comes_in_the_smallest_form_that_is_taken(client: httpx2.AsyncClient) -> None:
    path = "/assets/index-0a1b2c3d.js"
    for accepted, encoding, body in (
        ("gzip, deflate, br", "br", b"as Brotli"),
        ("gzip, br;q=0", "gzip", gzip.compress(SCRIPT)),
        ("identity", None, SCRIPT),
    ):
        answer, got = await raw(client, path, **{"accept-encoding": accepted})
        assert answer.headers.get("content-encoding") == encoding
        assert got == body if encoding != "gzip" else gzip.decompress(got) == SCRIPT
        assert answer.headers["content-type"].partition(";")[0] in ("text/javascript", "application/javascript")
        assert answer.headers["vary"] == "Accept-Encoding"
        assert "immutable" in answer.headers["cache-control"]


@pytest.mark.asyncio
async def test_what_a_browser_has_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    for path in ("/", "/assets/index-0a1b2c3d.js"):
        first, _ = await raw(client, path)
        again, body = await raw(client, path, **{"if-none-match": first.headers["etag"]})
        assert (again.status_code, body) == (304, b"")
        other, body = await raw(client, path, **{"if-none-match": '"another"'})
        assert other.status_code == 200 and body


@pytest.mark.asyncio
async def test_the_page_itself_is_asked_for_anew_and_may_be_built_later(
    client: httpx2.AsyncClient, static: Path
) -> None:
    answer, body = await raw(client, "/x/00000000000000000000")
    assert (answer.headers["cache-control"], body) == ("no-cache", b"<!doctype html>")
    (static / "index.html").unlink()
    answer, body = await raw(client, "/")
    assert answer.status_code == 503 and b"not built" in body
    (static / "index.html").write_bytes(b"built")
    assert (await raw(client, "/"))[1] == b"built"


@pytest.mark.asyncio
async def test_what_is_nowhere_is_not_found_also_before_the_page_is_built(
    client: httpx2.AsyncClient, static: Path
) -> None:
    shutil.rmtree(static)
    for path in ("/favicon.svg", "/robots.txt", "/nothing/here", "/api/v1/nothing"):
        assert (await raw(client, path))[0].status_code == 404
        assert (await client.post(path)).status_code == (405 if path == "/favicon.svg" else 404)
    static.mkdir()
    (static / "favicon.svg").write_bytes(b"<svg/>")
    assert (await raw(client, "/favicon.svg"))[1] == b"<svg/>"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["missing-0a1b2c3d.js", "..%2F..%2Fsecret.txt", "%2e%2e", ".hidden"])
async def test_only_assets_are_given_as_assets(client: httpx2.AsyncClient, name: str) -> None:
    assert (await raw(client, f"/assets/{name}"))[0].status_code == 404


async def sent(accept_encoding: str, media_type: str = "text/event-stream") -> list[Message]:
    """What a stream of two events sends, message by message."""

    async def events() -> AsyncIterator[bytes]:
        yield b"data: first\n\n"
        yield b"data: " + b"second " * 20_000 + b"\n\n"

    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "headers": [(b"accept-encoding", accept_encoding.encode())],
    }
    await CompressedEvents(StreamingResponse(events(), media_type=media_type))(scope, receive, send)
    return messages


@pytest.mark.asyncio
async def test_an_event_is_whole_in_what_is_sent_with_it() -> None:
    start, first, second, end = await sent("gzip")
    assert (b"content-encoding", b"gzip") in start["headers"]
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert stream.decompress(first["body"]) == b"data: first\n\n"
    assert stream.decompress(second["body"]).endswith(b"second \n\n")
    assert len(second["body"]) < 2000
    stream.decompress(end["body"])
    assert stream.eof and not end["more_body"]


@pytest.mark.asyncio
async def test_other_answers_and_other_clients_are_left_alone() -> None:
    for messages in (await sent("identity"), await sent("gzip", "text/plain")):
        assert b"content-encoding" not in dict(messages[0]["headers"])
        assert messages[1]["body"] == b"data: first\n\n"
