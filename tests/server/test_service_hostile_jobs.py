"""Snippets that crash, hang, flood or hide: each takes only itself along, its report says what happened, and the next
job is fine. What confines them is tested with the worker and the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from pydantic_core import from_json

from compiler.report import Report
from server.apart import TooLong, WentWrong
from server.running import READERS
from server.worker.records import REPORT
from server.worker.snippet import REPORTS
from tests.server.conftest import Service, eventually, processes_mentioning, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = {
    "segmentation fault": ("import ctypes\nctypes.string_at(0)", "crashed", "SIGSEGV"),
    "abort": ("import os\nos.abort()", "crashed", "SIGABRT"),
    "leaves at once": ("import os\nos._exit(0)", "crashed", "EarlyExit"),
    "leaves with a code": ("import os\nos._exit(7)", "crashed", "EarlyExit"),
    "endless loop": ("while True: pass", "timeout", "TimeLimit"),
    "stops itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout", "TimeLimit"),
    "closes everything and sleeps": ("import os, time\nos.closerange(0, 100)\ntime.sleep(99)", "timeout", "TimeLimit"),
    "floods its output": ("import sys\nwhile True: sys.__stdout__.write('x' * 1000)", "crashed", "OutputLimit"),
    "floods from below Python": ("import os\nwhile True: os.write(2, b'x' * 9999)", "crashed", "OutputLimit"),
    "floods the report pipe": ("import os\nwhile True: os.write(3, b'x' * 65536)", "crashed", "ReportLimit"),
    "takes all memory": ("x = bytearray(64 << 30)", "out_of_memory", "OutOfMemory"),
    "is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "out_of_memory", "OutOfMemory"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """One that ends jobs after a few seconds: for those that would not end."""
    async with running_service(tmp_path_factory.mktemp("hasty"), wall_seconds=5) as running:
        yield running


@pytest.mark.parametrize("name", CASES)
async def test_a_bad_job_harms_only_itself(service: Service, hasty_service: Service, name: str) -> None:
    source, status, error = CASES[name]
    service = hasty_service if status == "timeout" else service
    report = await service.explore(source)
    assert report["status"] == status, report["error"]
    assert report["error"]["type"] == error
    assert len(report["error"]["message"]) > 20
    assert report["error"]["hint"]
    assert [stage["name"] for stage in report["stages"]][:1] == ["capture"], "what had finished is kept"
    await service.next_job_is_fine()
    assert (await service.client.get("/healthz")).json()["restarts"] == 0


async def test_a_crash_names_the_line_of_the_snippet(service: Service) -> None:
    report = await service.explore("import ctypes\n\n\nctypes.string_at(0)")
    assert report["error"]["line"] == 4
    assert "Segmentation fault" in report["error"]["traceback"]


async def test_a_failure_runs_again_but_stays_visible(service: Service) -> None:
    source = "import os, random\nos.write(2, str(random.random()).encode())\nos._exit(1)"
    first = await service.explore(source)
    kept = await service.client.get(f"/api/v1/explorations/{first['id']}")
    assert kept.json() == first
    assert "immutable" not in kept.headers["cache-control"]
    second = await service.explore(source)
    assert second["error"]["traceback"] != first["error"]["traceback"], "it ran again"
    assert (first["observed"]["attempt"], second["observed"]["attempt"]) == (1, 2)


async def test_a_large_report_is_not_read_by_web_itself(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes seconds, in which web would answer nobody."""

    def small(read: Callable[..., Any]) -> Callable[..., Any]:
        def read_small(text: bytes, **how: Any) -> Any:
            assert len(text) < 300_000, "Web has read a report."
            return read(text, **how)

        return read_small

    monkeypatch.setattr("server.wire.parts.from_json", small(from_json))
    monkeypatch.setattr(Report, "model_validate_json", small(Report.model_validate_json))
    source = f"""import json, os
payload = json.dumps({{"/output": "a" * 300_000}}).encode()
os.write({REPORTS}, {REPORT!r} + len(payload).to_bytes(4, "big") + payload)
os._exit(0)
"""
    report = await service.explore(source)
    assert report["output"] == "a" * 300_000
    assert report["error"]["type"] == "EarlyExit"


@pytest.mark.parametrize("sizes", [(300_000,), (200_000, 200_000)], ids=["while it comes", "when it has come"])
@pytest.mark.parametrize("failure", [TooLong(), WentWrong("MemoryError")], ids=["time", "memory"])
async def test_a_report_that_takes_too_much_to_read_is_rejected_once(
    service: Service, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], failure: Exception
) -> None:
    async def soon(*_: object) -> None:
        raise failure

    monkeypatch.setattr(READERS, "soon", soon)
    source = f"""import json, os
for part, size in zip(({{"/output": ""}}, {{"/notes": [{{"message": ""}}]}}), {sizes}):
    payload = json.dumps(part).replace('""', '"' + size * "a" + '"').encode()
    os.write({REPORTS}, {REPORT!r} + len(payload).to_bytes(4, "big") + payload)
os._exit(0)  # {failure!r}
"""
    report = await service.explore(source)
    assert (report["status"], report["error"]["type"]) == ("crashed", "ReportRejected")
    assert "too much memory" in report["error"]["traceback"] and report["output"] == ""
    assert (report["source"], report["observed"]["attempt"]) == (source, 1)


async def test_cancelling_ends_all_processes_of_the_job(service: Service, marker: str) -> None:
    id = await service.start(
        f"import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}], start_new_session=True)\n"
        f"time.sleep(60)"
    )
    assert await asyncio.to_thread(eventually, lambda: processes_mentioning(marker))
    cancelled = await service.client.delete(f"/api/v1/explorations/{id}")
    assert cancelled.json()["status"] == "cancelled"
    assert processes_mentioning(marker) == []
    await service.next_job_is_fine()


async def test_a_cancel_at_any_moment_is_heard(service: Service) -> None:
    for delay in (0.0, 0.001, 0.003, 0.01, 0.03):
        id = await service.start(f"import time; time.sleep(30 + {delay})", cache="refresh")
        await asyncio.sleep(delay)
        cancelled = await service.client.delete(f"/api/v1/explorations/{id}")
        assert cancelled.json()["status"] == "cancelled", delay
    await service.next_job_is_fine()


async def test_a_stopped_job_says_what_there_is_and_what_is_missing(hasty_service: Service) -> None:
    report = await hasty_service.explore("while True: pass  # stopped")
    assert [stage["name"] for stage in report["stages"]] == ["capture"]
    message = report["error"]["message"]
    assert "longer than 5 seconds" in message
    assert "stages that had ended: capture." in message
    assert "Missing: lower, schedule, codegen, run, measure, compare." in message
    assert "wall_seconds" in report["error"]["hint"]


async def test_a_job_knows_its_time_and_ends_before_it(service: Service) -> None:
    report = await service.explore("verdict = options.max_seconds")
    limit = float(report["summary"]["verdict"])
    assert 0 < limit < 60, "the default of `wall_seconds`"
    asked = await service.explore("verdict = options.max_seconds", max_seconds=0.5)
    assert float(asked["summary"]["verdict"]) == 0.5
