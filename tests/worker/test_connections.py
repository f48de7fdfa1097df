"""What a web hears, and what it can ask: in order, bounded, and with no way to end the worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from compiler.options import Options
from server.wire.frames import frame
from server.wire.messages import Limits, Run, Welcome, send
from server.wire.profile import build_id, detected_profile
from tests.server.conftest import processes_mentioning
from tests.worker.harness import MIB, PLAIN, Web, WorkerProcess, children, eventually, worker_process

pytestmark = pytest.mark.asyncio


async def test_the_worker_says_who_it_is_before_anything_else(worker: WorkerProcess) -> None:
    async with worker.web(is_welcome=False) as web:
        await web.until(lambda: web.states)
        hello = web.hellos[0]
        assert (hello.build, hello.profile, hello.slots) == (build_id(), detected_profile(), 2)
        assert hello.tier in ("A", "B") and "seccomp" in hello.isolation


async def test_a_job_is_told_of_from_begin_to_end(web: Web) -> None:
    name = await web.begin(
        "import os\nos.write(1, b'raw output')\nos.write(1, bytes([0xff]))\nverdict = 'said'", wall_seconds=77
    )
    await web.until(lambda: any(name in state.running for state in web.states))
    done = await web.done(name)
    assert done.started is not None and done.started.wall_seconds == 60, "the smaller of the two limits"
    assert len(done.payloads) == 2, "after the first stage and at the end"
    assert b"/summary" in done.payloads[0] and done.verdict == "said"
    assert "/source" not in done.report(), "the service knows it"
    assert done.output == "raw output\ufffd"
    ended = done.ended
    assert ended is not None
    assert (ended.ending, ended.exit_code, ended.signal) == ("exited", 0, None)
    assert (ended.tier, ended.isolation) == (web.hellos[-1].tier, web.hellos[-1].isolation)
    assert (ended.device, ended.device_name) == ("cpu", detected_profile().device_name)
    assert ended.output_bytes == 11 and ended.report_bytes >= sum(map(len, done.payloads))
    assert ended.wall_seconds > 0 and ended.processor_seconds is not None
    assert ended.waited_seconds == 0
    await web.until(lambda: web.states[-1].running == ())


async def test_what_a_job_used_is_seen_from_outside(web: Web) -> None:
    done = await web.run(
        "import time\nx = b'x' * (200 << 20)\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"
    )
    ended = done.ended
    assert ended is not None
    assert done.report()["/status"] == "ok", done.report()
    assert ended.peak_memory_bytes is not None and 200 * MIB < ended.peak_memory_bytes < 600 * MIB
    assert ended.processor_seconds is not None and 1 <= ended.processor_seconds <= 2 * ended.wall_seconds + 1


async def test_what_ran_while_a_spare_warmed_up_is_no_part_of_what_its_job_used() -> None:
    busy = "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass"
    warm_source = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    with worker_process(PLAIN.model_copy(update={"warm_source": warm_source}), spares=1) as worker:
        async with worker.web() as web:
            await web.ready()
            await eventually(lambda: children(worker.zygote))
            ended = (await web.run("verdict = 1")).ended
            assert ended is not None
            assert ended.processor_seconds is not None and ended.processor_seconds < 1


async def test_a_job_knows_its_time_and_ends_before_it(web: Web) -> None:
    limit = float((await web.run("verdict = options.max_seconds", wall_seconds=20)).verdict)
    assert 0 < limit < 20
    asked = await web.run("verdict = options.max_seconds", Options(max_seconds=0.5))
    assert float(asked.verdict) == 0.5


async def test_a_job_that_is_cancelled_as_it_begins_ran_for_no_time(web: Web) -> None:
    for _ in range(8):
        job = await web.begin("import time\ntime.sleep(600)")
        await web.cancel(job)
        ended = (await web.done(job)).ended
        assert ended is not None and ended.ending == "cancelled" and ended.wall_seconds >= 0


async def test_jobs_run_side_by_side_and_no_more_than_there_are_slots(web: Web, tmp_path: Path) -> None:
    await web.until_slots_are_free()
    jobs = [await web.begin("import time\ntime.sleep(600)") for _ in range(2)]
    await web.until(lambda: all(web.jobs[job].started for job in jobs))
    third = await web.run("pass")
    assert third.ended is not None
    assert (third.ended.ending, third.ended.problem) == ("worker_lost", "no slot is free")
    for job in jobs:
        await web.cancel(job)
        await web.done(job)
    await web.next_job_is_fine()


async def test_two_webs_do_not_hear_of_each_other(worker: WorkerProcess, web: Web) -> None:
    await web.until_slots_are_free()
    async with worker.web() as other:
        mine = await web.begin("import time\ntime.sleep(600)")
        await web.until(lambda: web.jobs[mine].started)
        await other.next_job_is_fine()
        assert all(mine not in state.running for state in other.states)
        await other.cancel(mine)
        await other.next_job_is_fine()
        assert web.jobs[mine].ended is None
        await web.cancel(mine)
        await web.done(mine)


async def test_the_jobs_of_a_lost_connection_end(worker: WorkerProcess, web: Web, marker: str) -> None:
    async with worker.web() as other:
        await other.begin(
            "import os, sys\n"
            f"os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])"
        )
        assert await eventually(lambda: processes_mentioning(marker))
    assert await eventually(lambda: not processes_mentioning(marker))
    await web.next_job_is_fine()


NO_MESSAGES = {
    "a flood of bytes": b"\x01" * 600_000,
    "a header of four gigabytes": b"\xff" * 8,
    "a payload": (1).to_bytes(4, "big") * 2 + b"{x",
    "no JSON": frame(b"hello"),
    "deep JSON": frame(b"[" * 500_000),
    "another kind": frame(b'{"kind": "reboot"}'),
    "a run before the welcome": frame(
        Run(job="a.1", source="", options=Options(), limits=Limits(wall_seconds=1, output_bytes=1, report_bytes=1))
        .model_dump_json()
        .encode()
    ),
    "half a frame": b"\x00\x00",
}


@pytest.mark.parametrize("name", NO_MESSAGES)
async def test_what_is_no_message_closes_its_own_connection(worker: WorkerProcess, web: Web, name: str) -> None:
    async with worker.web(is_welcome=False) as bad:
        bad.writer.write(NO_MESSAGES[name])
        if bad.writer.can_write_eof():
            bad.writer.write_eof()
        await bad.until(lambda: bad.is_over)
    await web.next_job_is_fine()


async def test_a_name_that_is_taken_closes_the_connection(worker: WorkerProcess, web: Web) -> None:
    async with worker.web() as bad:
        name = await bad.begin("import time\ntime.sleep(600)")
        limits = Limits(wall_seconds=9, output_bytes=9, report_bytes=9)
        await send(bad.writer, Run(job=name, source="", options=Options(), limits=limits))
        await bad.until(lambda: bad.is_over)
    await web.next_job_is_fine()


async def test_a_web_that_does_not_read_holds_up_nobody_else(worker: WorkerProcess, web: Web, marker: str) -> None:
    await web.until_slots_are_free()
    _, writer = await asyncio.open_unix_connection(worker.socket, limit=1)
    await send(writer, Welcome(build="test"))
    flood = "import os\nfor _ in range(1000): os.write(3, b'r' + (30000).to_bytes(4, 'big') + b'x' * 30000)"
    source = (
        "import os, sys\nos.set_inheritable(3, True)\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {flood!r}, {marker!r}])"
    )
    limits = Limits(wall_seconds=600, output_bytes=MIB, report_bytes=64 * MIB)
    await send(writer, Run(job="deaf.1", source=source, options=Options(), limits=limits))
    assert await eventually(lambda: processes_mentioning(marker))
    for _ in range(3):
        await web.next_job_is_fine()
    memory = Path(f"/proc/{worker.process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in memory.splitlines() if line.startswith("VmRSS"))
    assert resident < 300 * 1024, "what is not read is not kept"
    writer.transport.abort()
    assert await eventually(lambda: not processes_mentioning(marker))
    await web.next_job_is_fine()
