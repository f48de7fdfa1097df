"""What was promised is kept: over kills of web and of the database, a locked database, and webs that share one."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Gate, Service, eventually, running_service
from tests.server.database import servers
from tests.server.test_service_processes import done, post, served

NO_WORKER = "/nonexistent/worker.sock"


def test_a_killed_web_loses_nothing_that_it_promised(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    running = f"{gate.wait}verdict = 'ran'"
    with served(tmp_path, lease_seconds=1) as (process, url):
        ids = [post(url, running), *(post(url, f"verdict = {number}") for number in range(3))]
        assert eventually(lambda: _has_begun(tmp_path, ids[0]))
        process.kill()
        process.join()
    with served(tmp_path, lease_seconds=1) as (_, url):
        assert post(url, running) == ids[0], "who asks again is given the job that there is"
        gate.open()
        assert eventually(lambda: all(done(url, id) for id in ids))
        reports = [done(url, id) for id in ids]
    assert [report["status"] for report in reports if report] == ["ok"] * 4
    assert [report["observed"]["attempt"] for report in reports if report] == [2, 1, 1, 1]  # type: ignore[index]


def _has_begun(data: Path, id: str) -> bool:
    with sqlite3.connect(data / "explorations.sqlite3") as connection:
        found = connection.execute("SELECT started_at FROM jobs WHERE id = ?", (id,)).fetchone()
    return found is not None and found[0] is not None


def test_kills_at_any_moment_lose_nothing_and_answer_nothing_twice(tmp_path: Path) -> None:
    moments = random.Random(20)
    promised: list[str] = []
    answered: dict[str, Any] = {}
    for kill in range(4):
        with served(tmp_path, lease_seconds=1, attempts=9) as (process, url):
            for number in range(3):
                promised.append(
                    post(url, f"import time; time.sleep({moments.random() / 5:.3f}); verdict = {kill, number}")
                )
            time.sleep(moments.random())
            for id in promised:
                report = done(url, id)
                if report is not None:
                    assert answered.setdefault(id, report) == report, "what is done does not change"
            process.kill()
            process.join()
    with served(tmp_path, lease_seconds=1, attempts=9) as (_, url):
        assert eventually(lambda: all(done(url, id) for id in promised))
        for id in promised:
            report = done(url, id)
            assert report is not None and report["status"] == "ok"
            assert answered.setdefault(id, report) == report


@pytest.mark.asyncio
async def test_a_locked_database_ends_nothing(tmp_path: Path) -> None:
    async with running_service(tmp_path, database_busy_seconds=0.1, lease_seconds=1) as service:
        await service.next_job_is_fine()
        gate = Gate(tmp_path / "gate")
        id = await service.start(f"{gate.wait}verdict = 'stored late'")
        await service.until_started(id)
        holder = sqlite3.connect(tmp_path / "explorations.sqlite3", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        gate.open()
        # Longer than the lease, and than the job takes.
        assert await _becomes(service, 503)
        await asyncio.sleep(3)
        refused = await service.client.post("/api/v1/explorations", json={"source": "refused = 1"})
        assert refused.status_code == 503 and "retry-after" in refused.headers
        unready = await service.client.get("/readyz")
        assert unready.status_code == 503 and "the database cannot be written" in unready.json()["detail"]
        health = (await service.client.get("/healthz")).json()
        assert health["status"] == "ok" and "locked" in health["database"]
        assert (await service.client.get(f"/api/v1/explorations/{id}")).json()["status"] == "running"
        holder.execute("ROLLBACK")
        holder.close()
        report = await service.until_done(id)
        assert (report["summary"]["verdict"], report["observed"]["attempt"]) == ("stored late", 1), "it ran once"
        assert await _becomes(service, 200)
        await service.next_job_is_fine()


@pytest.mark.asyncio
async def test_a_clock_that_is_set_forward_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_service(tmp_path, lease_seconds=1, unwanted_seconds=60, slots=1) as service:
        gate = Gate(tmp_path / "gate")
        running = await service.start(f"{gate.wait}verdict = 'ran'")
        await service.until_started(running)
        waiting = await service.start("verdict = 'waited'")
        clock = time.time
        monkeypatch.setattr(time, "time", lambda: clock() + 86400)
        # Longer than web looks at its leases, and at what nobody wants.
        await asyncio.sleep(3)
        gate.open()
        for id, verdict in ((running, "ran"), (waiting, "waited")):
            report = await service.until_done(id)
            assert (report["status"], report["summary"]["verdict"]) == ("ok", verdict), report["error"]


async def _becomes(service: Service, status: int) -> bool:
    for _ in range(1200):
        if (await service.client.get("/readyz")).status_code == status:
            return True
        await asyncio.sleep(0.1)
    return False


@pytest.mark.asyncio
async def test_a_database_server_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    if servers.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with servers.server() as server:
        async with running_service(tmp_path, database=server.url, database_busy_seconds=2) as service:
            running = await service.start("import time; time.sleep(1); verdict = 'ran'")
            waiting = await service.start("verdict = 'waited'")
            await service.until_started(running)
            server.kill()
            assert await _becomes(service, 503)
            refused = await service.client.post("/api/v1/explorations", json={"source": "refused = 1"})
            assert refused.status_code == 503
            await asyncio.to_thread(server.start)
            assert await _becomes(service, 200)
            for id, verdict in ((running, "ran"), (waiting, "waited")):
                report = await service.until_done(id)
                assert (report["status"], report["summary"]["verdict"]) == ("ok", verdict)


@pytest.mark.asyncio
async def test_webs_that_share_a_database_share_its_jobs(tmp_path: Path) -> None:
    async with (
        running_service(tmp_path, workers=(NO_WORKER,)) as asked,
        running_service(tmp_path) as runs,
    ):
        id = await asked.start("import time; time.sleep(0.3); verdict = 'elsewhere'")
        events = await asked.events(id)
        assert (events[0]["event"], events[-1]["event"]) == ("queued", "done")
        report = (await asked.client.get(f"/api/v1/explorations/{id}")).json()
        assert report["summary"]["verdict"] == "elsewhere"
        assert (await runs.client.get(f"/api/v1/explorations/{id}")).json() == report
        waited_for = await asked.explore("verdict = 'waited for'")
        assert waited_for["summary"]["verdict"] == "waited for"
        long = await asked.start("import time; time.sleep(600)")
        await runs.until_started(long)
        cancelled = await asked.client.delete(f"/api/v1/explorations/{long}")
        assert cancelled.json()["status"] == "cancelled"
        await runs.next_job_is_fine()


@pytest.mark.asyncio
async def test_webs_that_share_a_worker_wait_for_each_other(tmp_path: Path) -> None:
    async with running_service(tmp_path, attempts=1) as first:
        await first.next_job_is_fine()
        worker = first.app.state.web.local_worker
        assert worker is not None
        async with running_service(tmp_path, workers=(str(worker.socket),), attempts=1) as second:
            long = await first.start("import time; time.sleep(3); verdict = 'long'")
            await first.until_started(long)
            short = await second.explore("verdict = 'short'")
            assert (short["status"], short["summary"]["verdict"]) == ("ok", "short"), short["error"]
            report = await second.until_done(long)
            assert report["summary"]["verdict"] == "long"


@pytest.mark.asyncio
async def test_a_waiting_job_that_nobody_waits_for_is_dropped(tmp_path: Path) -> None:
    async with running_service(tmp_path, workers=(NO_WORKER,), unwanted_seconds=5) as service:
        unwanted = await service.start("nobody = 1")
        wanted = await service.start("somebody = 1")
        following = asyncio.create_task(service.events(wanted))
        path = Path(tmp_path, "explorations.sqlite3")
        assert await asyncio.to_thread(eventually, lambda: _state(path, unwanted) == "done")
        report = (await service.client.get(f"/api/v1/explorations/{unwanted}")).json()
        assert (report["status"], report["error"]["type"]) == ("dropped", "Dropped")
        assert _state(path, wanted) == "queued", "somebody follows its events"
        await service.client.delete(f"/api/v1/explorations/{wanted}")
        assert json.loads((await following)[-1]["data"]) == {"status": "cancelled"}


def _state(path: Path, id: str) -> str:
    with sqlite3.connect(path) as connection:
        return str(connection.execute("SELECT state FROM jobs WHERE id = ?", (id,)).fetchone()[0])


@pytest.mark.asyncio
async def test_who_waits_for_a_version_that_is_gone_is_told_so(tmp_path: Path) -> None:
    async with running_service(tmp_path, workers=(NO_WORKER,)) as before:
        id = await before.start("verdict = 'old'")
    with sqlite3.connect(tmp_path / "explorations.sqlite3") as connection:
        connection.execute("UPDATE jobs SET build = 'another'")
    async with running_service(tmp_path, workers=(NO_WORKER,), unwanted_seconds=2) as after:
        done = (await after.events(id))[-1]
        assert json.loads(done["data"]) == {"status": "dropped"}
        error = (await after.client.get(f"/api/v1/explorations/{id}")).json()["error"]
        assert error["type"] == "Outdated" and "another version of the service" in error["message"]


@pytest.mark.asyncio
async def test_who_goes_away_while_asking_leaves_no_job_that_nobody_runs(tmp_path: Path) -> None:
    async with running_service(tmp_path, lease_seconds=600) as service:
        await service.next_job_is_fine()
        for milliseconds in range(8):
            source = f"verdict = 'left after {milliseconds}'"
            asking = asyncio.create_task(service.start(source))
            await asyncio.sleep(milliseconds / 1000)
            asking.cancel()
            await asyncio.wait({asking})
            report = await service.explore(source)
            assert (report["status"], report["observed"]["attempt"]) == ("ok", 1)


@pytest.mark.asyncio
async def test_what_is_promised_survives_the_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_service(tmp_path, workers=(NO_WORKER,)) as service:
        flushed: list[Path] = []
        flush = os.fdatasync

        def noted(descriptor: int) -> None:
            flushed.append(Path(f"/proc/self/fd/{descriptor}").resolve())
            flush(descriptor)

        monkeypatch.setattr(os, "fdatasync", noted)
        await service.start("promised = True")
        assert flushed == [(tmp_path / "explorations.sqlite3-wal").resolve()], "before the answer"


@pytest.mark.asyncio
async def test_a_web_that_stops_puts_back_what_runs(tmp_path: Path) -> None:
    async with running_service(tmp_path) as first:
        gate = Gate(tmp_path / "gate")
        id = await first.start(f"{gate.wait}verdict = 'in the end'")
        await first.until_started(id)
    assert _state(tmp_path / "explorations.sqlite3", id) == "queued"
    gate.open()
    async with running_service(tmp_path) as second:
        report = await second.until_done(id)
        assert (report["summary"]["verdict"], report["observed"]["attempt"]) == ("in the end", 2)
