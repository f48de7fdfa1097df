"""The life of the processes behind the service: restarted when they die, and gone when the service is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from server.sandbox.processes import descendants
from tests.server.conftest import Service, processes_mentioning, running_service

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(60)


async def _is_ready_again(service: Service, restarts: int) -> None:
    for _ in range(100):
        health = (await service.client.get("/healthz")).json()
        if health["restarts"] >= restarts and health["worker"] == "ready":
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the worker was not started again")


@pytest.mark.asyncio
async def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    async with running_service(tmp_path) as service:
        await service.next_job_is_fine()
        keeper = service.app.state.worker._process.pid
        parent = descendants(keeper)[0]
        os.kill(parent, signal.SIGKILL)
        await _is_ready_again(service, 1)
        await service.next_job_is_fine()
        os.kill(service.app.state.worker._process.pid, signal.SIGKILL)
        await _is_ready_again(service, 2)
        await service.next_job_is_fine()


@pytest.mark.asyncio
async def test_a_job_whose_worker_dies_says_so(tmp_path: Path) -> None:
    async with running_service(tmp_path) as service:
        answer = await service.client.post(
            "/api/v1/explorations?wait=0.5", json={"source": "import time; time.sleep(9)"}
        )
        keeper = service.app.state.worker._process.pid
        os.kill(descendants(keeper)[0], signal.SIGKILL)
        events = await service.events(answer.json()["id"])
        assert json.loads(events[-1]["data"]) == {"status": "crashed"}
        report = (await service.client.get(f"/api/v1/explorations/{answer.json()['id']}")).json()
        assert report["error"]["type"] == "WorkerLost"
        await service.next_job_is_fine()


@pytest.mark.asyncio
async def test_a_parent_that_is_stuck_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.worker_process.GRACE_SECONDS", 0.5)
    async with running_service(tmp_path, wall_seconds=1) as service:
        await service.next_job_is_fine()
        os.kill(descendants(service.app.state.worker._process.pid)[0], signal.SIGSTOP)
        report = await service.explore("verdict = 'stuck'")
        assert report["error"]["type"] == "WorkerLost"
        await service.next_job_is_fine()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server.serve_programs", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_service(
    served: tuple[subprocess.Popen[str], str], marker: str, number: signal.Signals
) -> None:
    process, url = served
    source = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}], start_new_session=True)\n"
        "time.sleep(60)"
    )
    answer = httpx2.post(f"{url}/api/v1/explorations?wait=1", json={"source": source}, timeout=30)
    assert answer.status_code == 202
    assert processes_mentioning(marker)
    below = descendants(process.pid)
    assert len(below) >= 3
    process.send_signal(number)
    process.wait(timeout=20)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (processes_mentioning(marker) or any(map(_is_alive, below))):
        time.sleep(0.05)
    assert processes_mentioning(marker) == []
    assert not any(map(_is_alive, below))


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_events_arrive_while_the_job_runs(served: tuple[subprocess.Popen[str], str]) -> None:
    _, url = served
    answer = httpx2.post(f"{url}/api/v1/explorations", json={"source": "import time; time.sleep(1)"}, timeout=30)
    id = answer.json()["id"]
    arrivals: dict[str, float] = {}
    with httpx2.stream("GET", f"{url}/api/v1/explorations/{id}/events", timeout=30) as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                arrivals.setdefault(line.removeprefix("event: "), time.monotonic())
    assert arrivals["done"] - arrivals["stage"] > 0.8
