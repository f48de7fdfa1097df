"""Nothing of a job survives the end of the worker, keeper, zygote or guard, or the halt of a zygote."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from server.sandbox import processes

from .conftest import SETTINGS, Setting, box_of, name_of
from .harness import Box, is_alive, processes_named, wait_until, zygote_below
from .prelude import LIBC


def hold_on(name: str, **rest: object) -> None:
    import contextlib
    import signal
    import time

    LIBC.prctl(15, name.encode(), 0, 0, 0)
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in range(1, 32):
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)
            LIBC.prctl(1, 0, 0, 0, 0)
            break
    time.sleep(600)


@pytest.fixture(params=SETTINGS, ids=name_of)
def own_box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """One that may be broken."""
    tier, user, is_contained = request.param
    box = Box(tier, user, is_contained=is_contained)
    yield box
    box.close()


def begin(box: Box) -> tuple[str, str]:
    """A job with processes that mean to stay, and a spare beside it; the job's, and its processes' name. The spare is
    asked for first: were the zygote killed between making its folder and starting its guard, the folder would stay
    until the next zygote begins."""
    name = f"stay{os.urandom(4).hex()}"
    box.start("import sys\nsys.stdin.read()")
    job = box.start(hold_on, name=name, wall=600)
    wait_until(lambda: len(processes_named(name)) == 3, "the job does not start")
    return job, name


@pytest.mark.parametrize("who", ["worker", "keeper", "zygote"])
def test_nothing_survives_a_kill(own_box: Box, who: str) -> None:
    _, name = begin(own_box)
    family = [own_box.keeper, *processes.descendants(own_box.keeper)]
    victim = {"worker": own_box.process.pid, "keeper": own_box.keeper, "zygote": zygote_below(own_box.keeper)}[who]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not processes_named(name), "the job's processes survive")
    wait_until(lambda: not any(map(is_alive, family)), "a guard, the zygote or the keeper survives")
    if own_box.tier == "B":
        wait_until(
            lambda: not [path for path in own_box.folder.iterdir() if path.name != "job-import"], "files are left"
        )


def test_a_job_ends_although_the_zygote_stands_still(boxes: dict[Setting, Box]) -> None:
    """In all boxes at once, as it takes the time that the jobs have."""
    jobs = []
    for own_box in [box_of(setting, boxes) for setting in SETTINGS]:
        name = f"stay{os.urandom(4).hex()}"
        jobs.append((own_box, name, own_box.start(hold_on, name=name, wall=8.0)))
        wait_until(lambda: len(processes_named(name)) == 3, "the job does not start")
        os.kill(zygote_below(own_box.keeper), signal.SIGSTOP)
    for own_box, name, job in jobs:
        wait_until(lambda: not processes_named(name), "the job's processes survive their time")
        os.kill(zygote_below(own_box.keeper), signal.SIGCONT)
        assert own_box.result(job).ending == "time_limit"
        assert own_box.run("print(1)").output == "1\n"


def test_a_killed_guard_leaves_nothing(own_box: Box) -> None:
    job, name = begin(own_box)
    guard = own_box.guard_of(job)
    assert guard is not None
    os.kill(guard, signal.SIGKILL)
    own_box.result(job)
    assert not processes_named(name)
    assert own_box.run("print(1)").output == "1\n"
    if own_box.tier == "B":
        # The spare's.
        assert len([path for path in own_box.folder.iterdir() if path.name != "job-import"]) == 1


def test_jobs_in_a_row_leak_nothing(box: Box) -> None:
    held = [box.run("").descriptors for _ in range(25)]
    assert held[-1] == held[4]
    assert box.threads == 1


def test_no_copy_of_the_zygote_has_its_number(box: Box) -> None:
    """Libraries know a copy of a process by that. One took a guard for the zygote, and let it fork no job."""
    job, guard = map(int, box.run("import os\nprint(os.getpid(), os.getppid())").output.split())
    assert guard not in (job, box.zygote_number)
