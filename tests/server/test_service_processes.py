"""The life of the processes behind the service: restarted when they die, and gone when the service is."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from server.sandbox.processes import descendants
from tests.server.conftest import Service, eventually, processes_mentioning, running_service
from tests.server.serve_programs import started


@contextmanager
def served(data: Path, **settings: object) -> Iterator[tuple[ForkServerProcess, str]]:
    """The service as a program of its own, and its address. Killed when the block ends, if it still runs."""
    process, port = started(data, **settings)
    try:
        url = f"http://127.0.0.1:{port}/api/v1/explorations"
        assert eventually(lambda: _answers(url)), (data / "log").read_text()[-3000:]
        yield process, url
    finally:
        process.kill()
        process.join()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/none", timeout=60).status_code == 404
    except httpx2.TransportError:
        return False


def post(url: str, source: str) -> str:
    """The id that was promised."""
    answer = httpx2.post(url, json={"source": source}, timeout=300)
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["id"])


def done(url: str, id: str) -> dict[str, object] | None:
    """The report, once it is done. An id that was promised is never unknown."""
    answer = httpx2.get(f"{url}/{id}", timeout=300)
    assert answer.status_code == 200, answer.text
    report: dict[str, object] = answer.json()
    return None if report["status"] == "running" else report


def _worker_processes(service: Service) -> list[int]:
    worker = service.app.state.web.local_worker
    assert worker is not None and worker.process_id is not None
    return [worker.process_id, *descendants(worker.process_id)]


@pytest.mark.asyncio
async def test_a_job_whose_worker_is_killed_runs_again_and_the_worker_is_replaced(tmp_path: Path) -> None:
    async with running_service(tmp_path / "data") as service:
        await service.next_job_is_fine()
        # The second attempt finds what the first has left, which tells them apart.
        mark = tmp_path / "begun"
        id = await service.start(
            f"import pathlib, time\nmark = pathlib.Path({str(mark)!r})\nif not mark.exists():\n"
            "    mark.write_text('')\n    time.sleep(600)\nverdict = 'again'"
        )
        assert await asyncio.to_thread(eventually, mark.exists)
        os.kill(_worker_processes(service)[0], signal.SIGKILL)
        events = await service.events(id)
        assert json.loads(events[-1]["data"]) == {"status": "ok"}
        report = (await service.client.get(f"/api/v1/explorations/{id}")).json()
        assert (report["summary"]["verdict"], report["observed"]["attempt"]) == ("again", 2)
        assert events[-1]["id"].startswith("2-")
        await service.next_job_is_fine()
        assert (await service.client.get("/healthz")).json()["restarts"] >= 1


@pytest.mark.asyncio
async def test_a_job_whose_guard_is_killed_runs_again(tmp_path: Path) -> None:
    async with running_service(tmp_path / "data") as service:
        mark = tmp_path / "begun"
        id = await service.start(
            f"import os, pathlib, time\nmark = pathlib.Path({str(mark)!r})\nif not mark.exists():\n"
            "    mark.write_text(str(os.getppid()))\n    time.sleep(600)\nverdict = 'again'"
        )
        assert await asyncio.to_thread(eventually, lambda: mark.exists() and mark.read_text())
        os.kill(int(mark.read_text()), signal.SIGKILL)
        report = await service.until_done(id)
        assert (report["status"], report["observed"]["attempt"]) == ("ok", 2), report["error"]
        await service.next_job_is_fine()


@pytest.mark.asyncio
async def test_a_job_that_costs_every_worker_its_life_is_given_up_and_says_so(tmp_path: Path) -> None:
    async with running_service(tmp_path, attempts=2) as service:
        await service.next_job_is_fine()
        id = await service.start("import time; time.sleep(600)")
        for attempt in (1, 2):
            await asyncio.to_thread(eventually, partial(_runs, service, id, attempt))
            os.kill(_worker_processes(service)[0], signal.SIGKILL)
        events = await service.events(id)
        assert json.loads(events[-1]["data"]) == {"status": "crashed"}
        report = (await service.client.get(f"/api/v1/explorations/{id}")).json()
        assert report["error"]["type"] == "WorkerLost" and "2 times in a row" in report["error"]["message"]
        await service.next_job_is_fine()


def _runs(service: Service, id: str, attempt: int) -> bool:
    watch = service.app.state.web.explorations.watches.find(id)
    return watch is not None and watch.report is not None and watch.job.attempt == attempt and _has_stage(watch.log)


def _has_stage(log: object) -> bool:
    return log.last("stage") is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_service(tmp_path: Path, marker: str, number: signal.Signals) -> None:
    source = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}], start_new_session=True)\n"
        "time.sleep(60)"
    )
    with served(tmp_path) as (process, url):
        post(url, source)
        assert eventually(lambda: processes_mentioning(marker))
        assert process.pid is not None
        below = descendants(process.pid)
        assert len(below) >= 3
        os.kill(process.pid, number)
        process.join(timeout=300)
        assert process.exitcode is not None
        assert eventually(lambda: not processes_mentioning(marker))
        assert eventually(lambda: not any(map(_is_alive, below)))


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_who_waits_is_told_that_the_service_ends(tmp_path: Path, marker: str) -> None:
    source = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])"
    )
    with served(tmp_path) as (process, url), ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(httpx2.post, f"{url}?wait=60", json={"source": source}, timeout=300)
        assert eventually(lambda: processes_mentioning(marker))
        process.terminate()
        answer = waiting.result()
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5"), answer.text
        assert "The service is ending" in answer.json()["detail"]
        process.join(timeout=300)


def test_events_arrive_while_the_job_runs(tmp_path: Path) -> None:
    """The job is cancelled when its first event comes, and would be ended by the service otherwise."""
    with served(tmp_path) as (_, url):
        place = f"{url}/{post(url, 'import time; time.sleep(600)')}"
        seen: list[str] = []
        with httpx2.stream("GET", f"{place}/events", timeout=300) as stream:
            for line in stream.iter_lines():
                if line == "event: stage":
                    httpx2.delete(place, timeout=300)
                seen += [line] if line.startswith("event: ") else []
        assert seen[-1] == "event: done" and "event: stage" in seen
        assert httpx2.get(place, timeout=300).json()["status"] == "cancelled"


@pytest.mark.asyncio
async def test_a_worker_whose_socket_was_cleared_away_is_replaced(tmp_path: Path) -> None:
    async with running_service(tmp_path / "data") as service:
        await service.next_job_is_fine()
        worker = service.app.state.web.local_worker
        assert worker is not None
        before = worker.process_id
        with capture_logs() as told:
            shutil.rmtree(worker.socket.parent)
            assert await asyncio.to_thread(eventually, lambda: worker.process_id != before and worker.socket.exists())
        failed = [line["problem"] for line in told if line["event"] == "task_failed"]
        assert any("its socket was deleted" in problem for problem in failed), "which is what /readyz says meanwhile"
        assert worker.socket.parent.stat().st_mode & 0o777 == 0o700
        await service.next_job_is_fine()
    assert not worker.socket.parent.exists()
