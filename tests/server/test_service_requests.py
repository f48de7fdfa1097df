"""What holds for every request: an id, an answer whatever fails, and a log that never quotes a snippet."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import structlog
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from server import logs
from server.app import create_app
from server.metrics import Metrics
from server.request_context import AnswerBroken
from server.settings import Settings

pytestmark = pytest.mark.asyncio

WORD = "quetzalcoatl"

broken = APIRouter()


class _Number(BaseModel):
    number: int


@broken.post("/broken/value")
async def _raises_what_it_was_sent(request: Request) -> None:
    text = (await request.json())["source"]
    raise ValueError(f"cannot use {text}")


@broken.post("/broken/validation")
async def _fails_to_validate(request: Request) -> None:
    text = (await request.json())["source"]
    try:
        _Number.model_validate({"number": text})
    except ValueError as first:
        raise ExceptionGroup(text, [KeyError(text)]) from first


@broken.post("/broken/stream")
async def _fails_in_the_middle(request: Request) -> StreamingResponse:
    text = (await request.json())["source"]

    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError(text)

    return StreamingResponse(pieces())


@asynccontextmanager
async def client_of(**settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Settings(log_format="json", **settings))
    app.router.routes[:0] = broken.routes
    # The rooms behind are not needed: what is asked of them here is refused before.
    app.state.web = SimpleNamespace(explorations=None, metrics=Metrics())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def test_every_answer_has_an_id_and_a_valid_one_is_the_clients_own() -> None:
    async with client_of() as client:
        for path in ("/api/v1/examples", "/nothing", "/session", "/api/v1/highlight.css"):
            given = await client.get(path, headers={"X-Request-ID": "build-17.attempt_2"})
            assert given.headers["x-request-id"] == "build-17.attempt_2"
        made = {(await client.get("/nothing")).headers["x-request-id"] for _ in range(3)}
        assert len(made) == 3
        refused = await client.get("/api/v1/examples", headers={"Host": "evil.example", "X-Request-ID": "mine"})
        assert refused.json()["request_id"] == refused.headers["x-request-id"] == "mine"
        for invalid in ("", "a b", "x" * 65, '"quoted"', "-dash"):
            answer = await client.get("/nothing", headers={"X-Request-ID": invalid})
            assert answer.headers["x-request-id"] not in ("", invalid)


@pytest.mark.parametrize("log_format", ["json", "console"])
async def test_no_snippet_is_logged_whatever_fails(log_format: str, capfd: pytest.CaptureFixture[str]) -> None:
    async with client_of(log_requests=True) as client:
        logs.configure(log_format)  # type: ignore[arg-type]
        body = {"source": f"x = '{WORD}'"}
        headers = {"X-Request-ID": "traced"}
        for path in ("value", "validation"):
            answer = await client.post(f"/broken/{path}", json=body, headers=headers)
            assert answer.status_code == 500
            assert answer.json()["request_id"] == "traced"
            assert WORD not in answer.text
        with pytest.raises(AnswerBroken) as raised:
            await client.post("/broken/stream", json=body, headers=headers)
        # What a server would log of it.
        logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=raised.value)
        invalid = [
            {"source": WORD, "mode": WORD},
            {"source": [WORD]},
            {"source": f"{WORD}\0"},
            {"source": WORD, WORD: 1, "timing": WORD},
        ]
        for wrong in invalid:
            assert (await client.post("/api/v1/explorations", json=wrong)).status_code == 422
        content = f'{{"source": "{WORD}"'.encode()
        broken_json = await client.post(
            "/api/v1/explorations", content=content, headers={"Content-Type": "application/json"}
        )
        assert broken_json.status_code == 422
    logged = capfd.readouterr().err
    assert WORD not in logged
    assert logged.count("request_failed") == 3 and "traced" in logged
    assert "_raises_what_it_was_sent" in logged, "where it failed is told"
    assert "ValueError" in logged and "KeyError" in logged


async def test_libraries_log_as_we_do(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    try:
        raise OSError(28, "No space left on device")
    except OSError:
        logging.getLogger("uvicorn.error").exception("It failed: %s", "this")
        structlog.get_logger().exception("it_failed")
    theirs, ours = (json.loads(line) for line in capfd.readouterr().err.splitlines())
    assert theirs["event"] == "It failed: this" and theirs["logger"] == "uvicorn.error"
    assert "No space left" in theirs["exception"] and theirs["exception"] == ours["exception"]


async def test_requests_are_logged_where_that_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    async with client_of(log_requests=True) as client:
        await client.get("/api/v1/examples?a=secret", headers={"Authorization": "Bearer secret"})
    (line,) = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (line["event"], line["path"], line["status"]) == ("request", "/api/v1/examples", 200)
    assert line["client"] == "address:127.0.0.1" and "secret" not in json.dumps(line)
