"""Snippets that crash, hang, flood, fork, forge or hide: each takes only itself along, and the next job is fine.

Evidence is taken from outside of the job wherever there is any to take.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.conftest import Service, eventually, processes_mentioning, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = {
    "segmentation fault": ("import ctypes\nctypes.string_at(0)", "crashed", "SIGSEGV"),
    "abort": ("import os\nos.abort()", "crashed", "SIGABRT"),
    "leaves at once": ("import os\nos._exit(0)", "crashed", "EarlyExit"),
    "leaves with a code": ("import os\nos._exit(7)", "crashed", "EarlyExit"),
    "endless loop": ("while True: pass", "timeout", "TimeLimit"),
    "deaf to signals": (
        "import signal, time\nfor n in (2, 13, 15, 24): signal.signal(n, signal.SIG_IGN)\ntime.sleep(99)",
        "timeout",
        "TimeLimit",
    ),
    "stops itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout", "TimeLimit"),
    "closes everything and sleeps": ("import os, time\nos.closerange(0, 100)\ntime.sleep(99)", "timeout", "TimeLimit"),
    "floods its output": ("import sys\nwhile True: sys.__stdout__.write('x' * 1000)", "crashed", "OutputLimit"),
    "floods from below Python": ("import os\nwhile True: os.write(2, b'x' * 9999)", "crashed", "OutputLimit"),
    "floods the report pipe": ("import os\nwhile True: os.write(3, b'x' * 65536)", "crashed", "ReportLimit"),
    "sends reports without end": ("import os\nwhile True: os.write(3, b'{}\\n')", "crashed", "ReportLimit"),
    "prints to the report pipe": ("import os\nos.write(3, b'hello\\n')", "crashed", "ReportRejected"),
    "takes all memory": ("x = bytearray(64 << 30)", "out_of_memory", "OutOfMemory"),
    "is killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "out_of_memory", "OutOfMemory"),
    "fork bomb": (
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "timeout",
        "TimeLimit",
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """One that ends jobs after two seconds: for those that would not end."""
    async with running_service(tmp_path_factory.mktemp("hasty"), wall_seconds=2) as running:
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


@pytest.mark.parametrize(
    "line",
    [
        b'{"status": "ok"}',
        b"NaN",
        b"[" * 30_000,
        b'{"source": "", "status": "ok", "summary": {"eager_ms": NaN}}',
        b'{"source": "", "status": "ok", "summary": {"eager_ms": 1e999}}',
        b'{"source": "\\ud800", "status": "ok"}',
        b'{"source": "", "status": "ok", "version": ' + b"9" * 6000 + b"}",
        b'{"source": "", "status": "ok", "surprise": 1}',
    ],
    ids=["incomplete", "not an object", "deep", "NaN", "infinite", "surrogate", "huge integer", "extra field"],
)
async def test_what_is_no_report_is_rejected(service: Service, line: bytes) -> None:
    report = await service.explore(f"import os\nos.write(3, {line!r} + b'\\n')\nos._exit(0)")
    assert (report["status"], report["error"]["type"]) == ("crashed", "ReportRejected")
    await service.next_job_is_fine()


async def test_a_forged_report_cannot_pass_for_another_exploration(service: Service) -> None:
    forged = '{"source": "other", "id": "11111111111111111111", "status": "ok", "environment": {"torch": "9"}}'
    source = f"import os\nos.write(3, {forged.encode()!r} + b'\\n')\nos._exit(0)"
    report = await service.explore(source)
    assert report["source"] == source
    assert report["id"] != "1" * 20
    assert report["environment"]["torch"] == ""
    assert (await service.client.get("/api/v1/explorations/" + "1" * 20)).status_code == 404


async def test_a_daemon_does_not_survive_its_job(service: Service, marker: str) -> None:
    source = f"""
import os, signal, sys, time
for is_daemon in (False, True):
    if os.fork():
        if is_daemon:
            os._exit(0)  # the one between: what it left behind belongs to nobody
        time.sleep(0.2)
        break
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
else:
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", {marker!r}])
verdict = "left"
"""
    report = await service.explore(source)
    assert report["summary"]["verdict"] == "left"
    assert processes_mentioning(marker) == []
    await service.next_job_is_fine()


async def test_a_job_can_signal_nobody_but_itself(service: Service) -> None:
    # With -1 the kernel spares only the caller itself.
    report = await service.explore("import os\ntry:\n    os.kill(-1, 9)\nexcept OSError:\n    pass\nverdict = 'alone'")
    assert report["summary"]["verdict"] == "alone"
    parent = await service.explore("import os\ntry:\n    os.kill(os.getppid(), 9)\nexcept OSError:\n    verdict = 'no'")
    assert parent["summary"]["verdict"] == "no"
    await service.next_job_is_fine()
    assert (await service.client.get("/healthz")).json()["restarts"] == 0


async def test_cancelling_ends_all_processes_of_the_job(service: Service, marker: str) -> None:
    source = (
        f"import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}], start_new_session=True)\n"
        f"time.sleep(60)"
    )
    answer = await service.client.post("/api/v1/explorations", json={"source": source})
    assert answer.status_code == 202
    assert await asyncio.to_thread(eventually, lambda: processes_mentioning(marker))
    cancelled = await service.client.delete(f"/api/v1/explorations/{answer.json()['id']}")
    assert cancelled.json()["status"] == "cancelled"
    assert processes_mentioning(marker) == []
    await service.next_job_is_fine()


async def test_a_cancel_at_any_moment_is_heard(service: Service) -> None:
    for delay in (0.0, 0.001, 0.003, 0.01, 0.03):
        answer = await service.client.post(
            "/api/v1/explorations", json={"source": f"import time; time.sleep(30 + {delay})", "cache": "refresh"}
        )
        await asyncio.sleep(delay)
        cancelled = await service.client.delete(f"/api/v1/explorations/{answer.json()['id']}")
        assert cancelled.json()["status"] == "cancelled", delay
    await service.next_job_is_fine()


async def test_a_job_sees_nothing_of_the_service(service: Service) -> None:
    report = await service.explore("import os\nverdict = sorted(os.environ)")
    assert "SSH_AUTH_SOCK" not in report["summary"]["verdict"]
    os.environ["A_SECRET_OF_THE_SERVICE"] = "1"
    report = await service.explore(
        "import os, sys\nverdict = [*os.environ, *sys.argv, *sys.orig_argv]", cache="refresh"
    )
    assert "A_SECRET" not in report["summary"]["verdict"]
    report = await service.explore("import os\nverdict = sorted(int(n) for n in os.listdir('/proc/self/fd'))")
    # The last is the listing itself.
    assert report["summary"]["verdict"] == "[0, 1, 2, 3, 4, 5]"


async def test_a_job_cannot_write_outside_its_folder(service: Service, tmp_path: Path) -> None:
    isolation = (await service.client.get("/healthz")).json()["isolation"]
    if "no writes outside the job's folder" not in isolation:
        pytest.skip("this kernel has no Landlock, and the service says so")
    outside = tmp_path / "outside"
    tmp_path.chmod(0o777)
    source = f"try:\n    open({str(outside)!r}, 'w')\nexcept OSError as e:\n    verdict = 'refused'"
    report = await service.explore(source)
    assert report["summary"]["verdict"] == "refused"
    assert not outside.exists()
    inside = await service.explore("open('mine', 'w').write('x'); verdict = open('mine').read()")
    assert inside["summary"]["verdict"] == "x"


async def test_a_job_cannot_reach_the_network(service: Service) -> None:
    isolation = (await service.client.get("/healthz")).json()["isolation"]
    if "own network namespace" not in isolation and "no TCP" not in isolation:
        pytest.skip("this machine allows neither, and the service says so")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        address = listener.getsockname()
        source = (
            f"import socket\ntry:\n    socket.create_connection({address!r}, 1)\nexcept OSError:\n    verdict = 'no'"
        )
        report = await service.explore(source)
        assert report["summary"]["verdict"] == "no"
        with pytest.raises(TimeoutError):
            listener.accept()


async def test_jobs_leave_no_folder_behind(service: Service) -> None:
    await service.next_job_is_fine()
    folder = service.app.state.worker._folder
    await asyncio.sleep(0)
    assert [path.name for path in folder.iterdir()] == []


async def test_a_stopped_job_says_what_there_is_and_what_is_missing(hasty_service: Service) -> None:
    report = await hasty_service.explore("while True: pass  # stopped")
    assert [stage["name"] for stage in report["stages"]] == ["capture"]
    message = report["error"]["message"]
    assert "stages that had ended: capture." in message
    assert "Missing: lower, schedule, codegen, run, measure, compare." in message
    assert "wall_seconds" in report["error"]["hint"]


async def test_a_job_knows_its_time_and_ends_before_it(hasty_service: Service) -> None:
    report = await hasty_service.explore("verdict = options.max_seconds")
    limit = float(report["summary"]["verdict"])
    assert 0 < limit < 2, "the fixture's `wall_seconds`"
    asked = await hasty_service.explore("verdict = options.max_seconds", max_seconds=0.5)
    assert float(asked["summary"]["verdict"]) == 0.5
