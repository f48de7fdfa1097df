"""Snippets that crash, hang, flood, fork or hide: each takes only itself along, and the next job is fine.

Evidence is taken from outside of the job wherever there is any to take.
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

import pytest

from server.wire.messages import Ending
from tests.server.conftest import processes_mentioning
from tests.worker.harness import MIB, Web, WorkerProcess, eventually

pytestmark = pytest.mark.asyncio


@dataclass(frozen=True)
class Case:
    source: str
    ending: Ending = "exited"
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 120


CASES = {
    "segmentation fault": Case("import ctypes\nctypes.string_at(0)", signal=signal.SIGSEGV),
    "abort": Case("import os\nos.abort()", signal=signal.SIGABRT),
    "leaves at once": Case("import os\nos._exit(0)", exit_code=0),
    "leaves with a code": Case("import os\nos._exit(7)", exit_code=7),
    "kills itself": Case("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", signal=signal.SIGKILL),
    "endless loop": Case("while True: pass", "time_limit", wall_seconds=2),
    "deaf to signals": Case(
        "import signal, time\nfor n in (2, 13, 15, 24): signal.signal(n, signal.SIG_IGN)\ntime.sleep(999)",
        "time_limit",
        wall_seconds=2,
    ),
    "stops itself": Case("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "time_limit", wall_seconds=2),
    "closes everything and sleeps": Case(
        "import os, time\nos.closerange(0, 100)\ntime.sleep(999)", "time_limit", wall_seconds=2
    ),
    "fork bomb": Case(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "time_limit", wall_seconds=2
    ),
    "floods its output": Case("import sys\nwhile True: sys.__stdout__.write('x' * 1000)", "output_limit"),
    "floods from below Python": Case("import os\nwhile True: os.write(2, b'x' * 9999)", "output_limit"),
    "floods the report pipe": Case("import os\nwhile True: os.write(3, b'x' * 65536)", "report_limit"),
    "floods all pipes at once": Case(
        "import os\nwhile True:\n    for n in (1, 3, 4): os.write(n, b'\\x01' * 60000)", "report_limit"
    ),
    "announces four gigabytes": Case(
        "import os, time\nos.write(3, b'r' + b'\\xff' * 4)\ntime.sleep(999)", "report_limit"
    ),
    "sends empty reports without end": Case("import os\nwhile True: os.write(3, b'r' + bytes(4))", "report_limit"),
    "sends large reports without end": Case(
        "import os\nrecord = b'r' + (1 << 20).to_bytes(4) + bytes(1 << 20)\n"
        "while True:\n    left = record\n    while left: left = left[os.write(3, left):]",
        "report_limit",
    ),
    "begins a report and leaves": Case(
        "import os\nos.write(3, b'r' + bytes([0, 0, 1, 0]) + b'x')\nos._exit(0)", exit_code=0
    ),
    "takes all memory": Case(
        "parts = []\nwhile True: parts.append(bytearray(1 << 24))", exit_code=0
    ),  # a MemoryError is the report's to tell
    "shares all memory": Case(
        "import mmap, time\nparts = []\nfor _ in range(500):\n    part = mmap.mmap(-1, 1 << 23)\n"
        "    part.write(b'x' * (1 << 23))\n    parts.append(part)\ntime.sleep(999)",
        "memory_limit",
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_bad_job_harms_only_itself(web: Web, name: str) -> None:
    case = CASES[name]
    done = await web.run(case.source, wall_seconds=case.wall_seconds)
    ended = done.ended
    assert ended is not None and ended.ending == case.ending, ended
    if case.ending == "exited":
        assert (ended.exit_code, ended.signal) == (case.exit_code, case.signal)
    assert done.report()["/stages"][0]["name"] == "capture", "what had finished is kept"
    assert (ended.report_bytes <= 33 * MIB) and (ended.output_bytes <= 2 * MIB)
    await web.next_job_is_fine()
    assert web.states[-1].restarts == 0


async def test_disk_is_bounded(web: Web) -> None:
    source = (
        "chunk = b'x' * (1 << 20)\nfor name in range(200):\n    with open(str(name), 'wb') as file:\n"
        "        for _ in range(8): file.write(chunk)\n"
        "import time\ntime.sleep(999)"
    )
    ended = (await web.run(source)).ended
    # A folder in memory is full by itself; elsewhere the worker ends the job.
    assert ended is not None and ended.ending in ("disk_limit", "exited"), ended
    await web.next_job_is_fine()


async def test_a_crash_names_the_line_of_the_snippet(web: Web) -> None:
    ended = (await web.run("import ctypes\n\n\nctypes.string_at(0)")).ended
    assert ended is not None
    assert "Segmentation fault" in ended.last_output
    assert 'File "<snippet>", line 4' in ended.last_output


async def test_a_daemon_does_not_survive_its_job(web: Web, marker: str) -> None:
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
    assert (await web.run(source)).verdict == "left"
    assert processes_mentioning(marker) == []
    await web.next_job_is_fine()


async def test_a_job_can_signal_nobody_but_itself(web: Web) -> None:
    alone = await web.run("import os\ntry: os.kill(-1, 0)\nexcept OSError: pass\nverdict = 'alone'")
    assert alone.verdict == "alone"
    done = await web.run("import os\ntry: os.kill(os.getppid(), 9)\nexcept OSError: pass\nverdict = 'lives'")
    assert done.ended is not None and done.ended.ending == "exited"
    await web.next_job_is_fine()
    assert web.states[-1].restarts == 0


async def test_cancelling_ends_all_processes_of_the_job(web: Web, marker: str) -> None:
    name = await web.begin(
        f"import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])\n"
        f"time.sleep(600)"
    )
    assert await eventually(lambda: processes_mentioning(marker))
    await web.cancel(name)
    done = await web.done(name)
    assert done.ended is not None and done.ended.ending == "cancelled"
    assert processes_mentioning(marker) == []
    await web.next_job_is_fine()


async def test_a_cancel_at_any_moment_is_heard(web: Web) -> None:
    for delay in (0.0, 0.001, 0.003, 0.01, 0.03):
        name = await web.begin(f"import time; time.sleep(600 + {delay})")
        await asyncio.sleep(delay)
        await web.cancel(name)
        done = await web.done(name)
        assert done.ended is not None and done.ended.ending == "cancelled", delay
    await web.next_job_is_fine()


async def test_a_job_sees_nothing_of_the_worker(worker: WorkerProcess, web: Web) -> None:
    done = await web.run("import os, sys\nverdict = [*os.environ, *sys.argv, *sys.orig_argv]")
    assert "A_SECRET_OF_THE_WORKER" not in done.verdict and "FUSIONSCOPE_SOCKET" not in done.verdict
    assert str(worker.socket) not in done.verdict
    done = await web.run("import os\nverdict = sorted(int(n) for n in os.listdir('/proc/self/fd'))")
    # The last is the listing itself.
    assert done.verdict == "[0, 1, 2, 3, 4, 5, 6]"


async def test_a_job_that_lies_about_its_end_cannot_go_on(web: Web) -> None:
    """What a job writes never decides whether it is over."""
    lie = (
        "import os, time\nos.write(3, b'b' + bytes([0, 0, 0, 2]) + b'{}')\n"
        "os.write(3, b'w' + bytes(4))\ntime.sleep(999)"
    )
    ended = (await web.run(lie, wall_seconds=2)).ended
    assert ended is not None and ended.ending == "time_limit"
    await web.next_job_is_fine()
