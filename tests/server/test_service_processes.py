"""The life of the processes behind the service: restarted when they die, and gone when the service is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from compiler.options import Options
from server.sandbox.processes import descendants
from server.worker.job import Channel, JobProcess
from server.worker.messages import Cancel, Run
from tests.server.conftest import Service, eventually, processes_mentioning, running_service

ROOT = Path(__file__).parents[2]


async def _is_ready_again(service: Service, restarts: int) -> None:
    for _ in range(1200):
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
            "/api/v1/explorations?wait=0.5", json={"source": "import time; time.sleep(50)"}
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
    monkeypatch.setattr("server.worker_process.GRACE_SECONDS", 1.0)
    async with running_service(tmp_path, wall_seconds=4) as service:
        await service.next_job_is_fine()
        os.kill(descendants(service.app.state.worker._process.pid)[0], signal.SIGSTOP)
        report = await service.explore("verdict = 'stuck'")
        assert report["error"]["type"] == "WorkerLost"
        await service.next_job_is_fine()


def test_a_cancel_that_comes_together_with_its_job_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.sandbox.processes.end_descendants", lambda _: None)  # this process has others
    sent = (Run(job="a", source="", options=Options(), wall_seconds=300), Cancel(job="a"))
    incoming, service = os.pipe()
    os.write(service, b"".join(message.model_dump_json().encode() + b"\n" for message in sent))
    channel = Channel(incoming, service)
    assert channel.next_message() == sent[0]
    snippet = subprocess.Popen(["sleep", "300"], start_new_session=True)
    (reports, _), (output, _) = pipes = os.pipe(), os.pipe()
    ended = JobProcess("a", snippet.pid, reports, output, 1000, 1000).watch(channel, 300)
    snippet.returncode = 0  # it was waited for
    for descriptor in (incoming, service, *(writing for _, writing in pipes)):
        os.close(descriptor)
    assert (ended.ending, ended.signal) == ("cancelled", signal.SIGKILL)


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
    answer = httpx2.post(f"{url}/api/v1/explorations", json={"source": source}, timeout=300)
    assert answer.status_code == 202
    assert eventually(lambda: processes_mentioning(marker))
    below = descendants(process.pid)
    assert len(below) >= 3
    process.send_signal(number)
    process.wait(timeout=300)
    assert eventually(lambda: not processes_mentioning(marker))
    assert eventually(lambda: not any(map(_is_alive, below)))


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_events_arrive_while_the_job_runs(served: tuple[subprocess.Popen[str], str]) -> None:
    """The job is cancelled when its first event comes, and would be ended by the service otherwise."""
    _, url = served
    source = {"source": "import time; time.sleep(600)"}
    answer = httpx2.post(f"{url}/api/v1/explorations", json=source, timeout=300)
    place = f"{url}/api/v1/explorations/{answer.json()['id']}"
    seen: list[str] = []
    with httpx2.stream("GET", f"{place}/events", timeout=300) as stream:
        for line in stream.iter_lines():
            if line == "event: stage":
                httpx2.delete(place, timeout=300)
            seen += [line] if line.startswith("event: ") else []
    assert seen[-1] == "event: done" and "event: stage" in seen
    assert httpx2.get(place, timeout=300).json()["status"] == "cancelled"
