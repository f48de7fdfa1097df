"""The life of the processes below a worker: started again when they die, and gone when the worker is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.sandbox.processes import descendants
from tests.server.conftest import processes_mentioning
from tests.worker.harness import ROOT, Web, WorkerProcess, children, eventually, worker_process

SLEEPER = (
    "import subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}], start_new_session=True)\n"
    "time.sleep(600)"
)


def is_alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


async def spares(worker: WorkerProcess, count: int) -> list[int]:
    """The guards of spares, once there are so many."""
    await eventually(lambda: len(children(worker.zygote)) >= count)
    return children(worker.zygote)


@pytest.mark.parametrize("is_keeper", [False, True], ids=["zygote", "keeper"])
@pytest.mark.asyncio
async def test_a_zygote_that_dies_is_replaced_and_its_job_says_so(
    worker: WorkerProcess, web: Web, marker: str, is_keeper: bool
) -> None:
    restarts = (await web.ready()).restarts
    name = await web.begin(SLEEPER.format(marker=marker))
    assert await eventually(lambda: processes_mentioning(marker))
    os.kill(worker.keeper if is_keeper else worker.zygote, signal.SIGKILL)
    ended = (await web.done(name)).ended
    assert ended is not None and ended.ending == "worker_lost" and ended.problem
    assert processes_mentioning(marker) == [], "nothing of the job runs any more when its end is told"
    await web.ready(restarts + 1)
    assert any(not state.ready and state.problem for state in web.states)
    await web.next_job_is_fine()


@pytest.mark.asyncio
async def test_a_zygote_that_stands_still_is_given_up(worker: WorkerProcess, web: Web, marker: str) -> None:
    restarts = (await web.ready()).restarts
    name = await web.begin(SLEEPER.format(marker=marker), wall_seconds=5)
    assert await eventually(lambda: processes_mentioning(marker))
    os.kill(worker.zygote, signal.SIGSTOP)
    ended = (await web.done(name)).ended
    assert ended is not None and ended.ending == "time_limit", "its time was up, whatever stands still"
    assert processes_mentioning(marker) == []
    await web.ready(restarts + 1)
    await web.next_job_is_fine()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.asyncio
async def test_a_spare_that_dies_or_stands_still_loses_no_job(
    worker: WorkerProcess, web: Web, number: signal.Signals
) -> None:
    await web.next_job_is_fine()
    guards = await spares(worker, 2)
    watched = [process for guard in guards for process in (guard, *descendants(guard))]
    for guard in guards:
        os.kill(guard, number)
    if number == signal.SIGKILL:  # under way when `kill` returns: until then a spare takes a job, and loses it
        while any(is_alive(process) for process in watched):
            time.sleep(0.001)
    job = await web.begin("verdict = 'fine'")
    if number == signal.SIGSTOP:  # of a guard: the job below it runs, and is over when the guard goes on
        for guard in children(worker.zygote):
            os.kill(guard, signal.SIGCONT)
    assert (await web.done(job)).verdict == "fine"
    await web.next_job_is_fine()


@pytest.mark.asyncio
async def test_many_jobs_leave_nothing_behind(worker: WorkerProcess, web: Web) -> None:
    jobs = 200
    await web.next_job_is_fine()
    guards = await spares(worker, 2)

    def held() -> dict[str, int]:
        return {
            "descriptors of the worker": len(os.listdir(f"/proc/{worker.process.pid}/fd")),
            "descriptors of the zygote": len(os.listdir(f"/proc/{worker.zygote}/fd")),
            "processes": len(worker.descendants()),
        }

    # How many there are depends on how far the spares have come just now. What is left behind grows with the jobs.
    before = held()
    for number in range(jobs):
        done = await web.run(f"open('file', 'w').write('x' * 1000); verdict = {number}")
        assert done.verdict == str(number)
    assert await eventually(lambda: len(children(worker.zygote)) == len(guards))
    assert await eventually(lambda: all(held()[name] < before[name] + jobs // 10 for name in before)), (before, held())
    kept = [path for path in worker.folder.rglob("*") if path.name == "file"]
    assert kept == []


@pytest.mark.asyncio
async def test_no_process_imports_what_the_program_does_not_name(web: Web) -> None:
    """torch takes seconds and hundreds of MiB, which would count against the job's memory."""
    done = await web.run("import sys\nverdict = 'torch' in sys.modules")
    assert done.verdict == "False"


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, "stdin"])
@pytest.mark.asyncio
async def test_nothing_outlives_the_worker(marker: str, way: signal.Signals | str) -> None:
    with worker_process(spares=1) as worker:
        async with worker.web() as web:
            await web.begin(SLEEPER.format(marker=marker))
            assert await eventually(lambda: processes_mentioning(marker))
            below = worker.descendants()
            assert len(below) >= 5
            if isinstance(way, signal.Signals):
                worker.process.send_signal(way)
            else:
                assert worker.process.stdin is not None
                worker.process.stdin.close()
            code = await asyncio.to_thread(worker.process.wait, 120)
            assert code == (-signal.SIGKILL if way == signal.SIGKILL else 0)
            assert await eventually(lambda: not processes_mentioning(marker) and not any(map(is_alive, below)))
        if way != signal.SIGKILL:
            assert [path.name for path in worker.folder.iterdir()] == []


@pytest.mark.asyncio
async def test_what_a_killed_worker_left_is_removed_and_its_socket_taken_over(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    left = tmp_path / f"fusionscope-worker-{os.getpid()}-abc"
    (left / "trial-1" / "jobs").mkdir(parents=True)
    (left / "job-1").mkdir()
    (left / "job-1").chmod(0)
    with worker_process() as worker:
        async with worker.web() as web:
            await web.next_job_is_fine()
        worker.process.kill()
        worker.process.wait()
        assert worker.socket.exists()
        variables = {"FUSIONSCOPE_SOCKET": str(worker.socket), "TMPDIR": str(tmp_path)}
        second = subprocess.Popen(
            [sys.executable, "-m", "server.worker", "--end-with-stdin"],
            env={**os.environ, **variables},
            cwd=ROOT,
            stdin=subprocess.PIPE,
        )
        assert second.stdin is not None
        try:
            async with worker_at(worker.socket, second) as web:
                await web.until(lambda: web.hellos)
            assert not left.exists()
        finally:
            second.stdin.close()
            second.wait(120)


def worker_at(socket: Path, process: subprocess.Popen[bytes]) -> contextlib.AbstractAsyncContextManager[Web]:
    return WorkerProcess(process, socket, socket.parent).web()


REFUSALS = {
    "a tier that confines nothing, without the operator's word": (
        {"FUSIONSCOPE_TIER": "trusted"},
        3,
        "FUSIONSCOPE_TRUST_SNIPPETS=yes-i-trust-every-snippet",
    ),
    "a word that is another": ({"FUSIONSCOPE_TRUST_SNIPPETS": "yes"}, 2, "trust_snippets"),
    "a path that is too long": ({"FUSIONSCOPE_SOCKET": "/tmp/" + "x" * 200}, 3, "107 bytes"),
    "a place that is taken": ({"FUSIONSCOPE_SOCKET": "/etc/hostname"}, 3, "is no socket"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses_to_start_and_says_why(name: str) -> None:
    variables, code, said = REFUSALS[name]
    ran = subprocess.run(
        [sys.executable, "-m", "server.worker"],
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr and "Traceback" not in ran.stderr


def test_it_refuses_to_start_where_no_tier_works(tmp_path: Path) -> None:
    entry = (
        "import server.sandbox.tiers as tiers\n"
        "tiers.try_tier = lambda tier, uses_gpu, within: ['this machine was made to lack it']\n"
        "from server.settings import WorkerSettings\n"
        "from server.worker.program import run\n"
        "raise SystemExit(run(WorkerSettings()))"
    )
    path = tmp_path / "worker.sock"
    ran = subprocess.run(
        [sys.executable, "-c", entry],
        env={**os.environ, "FUSIONSCOPE_SOCKET": str(path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 3 and not path.exists()
    assert "Tier A does not work here" in ran.stderr and "Tier B does not work here" in ran.stderr


@pytest.mark.asyncio
async def test_a_second_worker_does_not_take_a_socket_away(worker: WorkerProcess, web: Web) -> None:
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "server.worker"],
        env={**os.environ, "FUSIONSCOPE_SOCKET": str(worker.socket)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 3 and "another worker listens" in ran.stderr
    await web.next_job_is_fine()
