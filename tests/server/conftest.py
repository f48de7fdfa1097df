"""A service with a small program in the compiler's place, and what tests ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from server.app import create_app
from server.local_worker import LocalWorker
from server.settings import Settings
from server.worker.channel import Program
from server.worker.records import REPORT
from server.worker.snippet import REPORTS
from tests.server.run_worker import PLAIN, command


class _Trusted(TypedDict):
    tier: Literal["trusted"]
    trust_snippets: Literal["yes-i-trust-every-snippet"]


TRUSTED: _Trusted = {"tier": "trusted", "trust_snippets": "yes-i-trust-every-snippet"}
"""For tests that are not about the sandbox: what they run does no harm."""

TWO_KERNELS = """import torch
@torch.compile
def f(x):
    y = torch.relu(x)
    return y.sum(1) * torch.flip(y.sum(1), (0,))
f(torch.randn(64, 32))
"""
"""What jobs of the real compiler explore."""


@asynccontextmanager
async def running_service(data: Path, program: Program = PLAIN, **settings: Any) -> AsyncIterator[Service]:
    """Web in this process and the worker as a program of its own; over when the block ends."""
    given: dict[str, Any] = {**TRUSTED, **settings}
    chosen = Settings(data=data, log_format="json", **given)
    app = create_app(chosen, worker=LocalWorker(chosen, command(program)) if chosen.needs_own_worker() else None)
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as client:
            yield Service(app, client)


class Service:
    def __init__(self, app: FastAPI, client: httpx2.AsyncClient) -> None:
        self.app = app
        self.client = client

    async def explore(self, source: str, **fields: Any) -> dict[str, Any]:
        """The report of `source`, waiting for its end, also beyond what the service lets one request wait."""
        answer = await self.client.post("/api/v1/explorations?wait=60", json={"source": source, **fields})
        assert answer.status_code in (200, 202), answer.text
        report: dict[str, Any] = answer.json()
        return await self.until_done(report["id"]) if answer.status_code == 202 else report

    async def start(self, source: str, **fields: Any) -> str:
        """The id of `source`, which waits or runs when this returns."""
        answer = await self.client.post("/api/v1/explorations", json={"source": source, **fields})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def until_done(self, id: str) -> dict[str, Any]:
        return await self.until(id, lambda report: report["status"] != "running")

    async def until_started(self, id: str) -> None:
        """Until the exploration has a stage, so that its snippet runs or is about to."""
        await self.until(id, lambda report: bool(report["stages"]))

    async def until(self, id: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Its report, as soon as it is so."""
        async with asyncio.timeout(900):
            while True:
                report: dict[str, Any] = (await self.client.get(f"/api/v1/explorations/{id}")).json()
                if is_so(report):
                    return report
                await asyncio.sleep(0.02)

    async def events(self, id: str, after: str | None = None) -> list[dict[str, str]]:
        """All events of an exploration until it is done."""
        headers = {"Last-Event-ID": after} if after is not None else {}
        answer = await self.client.get(f"/api/v1/explorations/{id}/events", headers=headers)
        assert answer.status_code == 200, answer.text
        return parse_events(answer.text)

    async def next_job_is_fine(self) -> None:
        """A job after a bad one runs as if nothing had been."""
        report = await self.explore("verdict = 'fine'", cache="refresh")
        assert (report["status"], report["summary"]["verdict"]) == ("ok", "fine")


class Gate:
    """What a job waits at until a test opens it. A job of the sandbox does not see it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.wait = f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"
        """Lines that a snippet begins with."""

    def open(self) -> None:
        self._path.touch()


def forging(parts: dict[str, Any] | bytes, leave: str = "os._exit(0)") -> str:
    """A snippet that writes `parts`, by their pointers, to the pipe of the report itself, past the compiler."""
    payload = parts if isinstance(parts, bytes) else json.dumps(parts).encode()
    record = REPORT + len(payload).to_bytes(4, "big") + payload
    return f"import os\nos.write({REPORTS}, {record!r})\n{leave}"


def parse_events(text: str) -> list[dict[str, str]]:
    found = []
    for block in text.split("\n\n"):
        lines = [line.partition(": ") for line in block.splitlines() if line and not line.startswith(":")]
        if lines:
            found.append({name: value for name, _, value in lines})
    return found


def eventually(is_so: Callable[[], object], seconds: float = 120) -> bool:
    """Whether it comes to be so, within a time that only what never happens takes, also on a busy machine."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.02)
    return bool(is_so())


def processes_mentioning(text: str) -> list[int]:
    """Living processes with `text` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if text.encode() in command and state != "Z":
                    found.append(int(entry.name))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    async with running_service(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[str]:
    """A text that no other process carries in its command line."""
    yield f"marker-{tmp_path.name}-{id(tmp_path)}"
