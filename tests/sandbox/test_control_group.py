"""A control group for each job: what is written where, on a tree of files; and what the kernel then does, where this
process may make groups. The command that runs the second in a machine of its own is in docs/operators.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.sandbox import ControlGroups
from server.sandbox.control_group import LEAF
from tests.sandbox.harness import LIMITS


def tree(folder: Path, controllers: str = "cpuset cpu io memory pids") -> Path:
    """A group as files. A real one has those of each group in it at once."""
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.procs").write_text("")
    (folder / LEAF).mkdir()
    (folder / LEAF / "memory.swap.max").write_text("max")
    return folder


class Tree(ControlGroups):
    """Has no kernel to try it on."""

    def _try(self) -> None:
        return


def test_a_job_gets_its_limits(tmp_path: Path) -> None:
    groups = Tree(tier_a=True, threads=2, processors=8, own=tree(tmp_path))
    assert groups.layer == "control group (memory, pids, cpu)"
    for folder in (tmp_path, tmp_path / "jobs"):
        assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    made = groups.make(LIMITS)
    told = {path.name: path.read_text() for path in made.folder.iterdir()}
    assert told == {
        "memory.max": str(LIMITS.memory_bytes + LIMITS.shared_memory_bytes + LIMITS.disk_bytes),
        "memory.swap.max": "0",
        "pids.max": str(LIMITS.processes + 1),
        "cpu.max": "200000 100000",
    }


def test_a_job_that_may_use_every_core_is_not_held_back(tmp_path: Path) -> None:
    made = Tree(tier_a=False, threads=8, processors=8, own=tree(tmp_path)).make(LIMITS)
    assert not (made.folder / "cpu.max").exists()
    assert (made.folder / "memory.max").read_text() == str(LIMITS.memory_bytes + LIMITS.shared_memory_bytes)


def test_an_end_for_lack_of_memory_is_told_from_others(tmp_path: Path) -> None:
    made = Tree(tier_a=False, threads=1, processors=1, own=tree(tmp_path)).make(LIMITS)
    assert not made.ran_out_of_memory()
    for count in (0, 3):
        (made.folder / "memory.events").write_text(f"low 0\nmax 12\noom 3\noom_kill {count}\n")
        assert made.ran_out_of_memory() is bool(count)


def test_a_group_without_control_of_memory_is_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no control of memory"):
        ControlGroups(tier_a=False, threads=1, processors=1, own=tree(tmp_path, "hugetlb pids"))


def test_what_a_killed_worker_left_is_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, living = (tmp_path / "jobs" / f"{process}-0" for process in (dead.pid, os.getppid()))
    left.mkdir(parents=True)
    living.mkdir()
    Tree(tier_a=False, threads=1, processors=1, own=tree(tmp_path))
    assert not left.exists() and living.exists()
    shutil.rmtree(tmp_path / "jobs")


def may_make_groups() -> bool:
    try:
        ControlGroups(tier_a=False, threads=1, processors=1)
    except OSError:
        return False
    return True


EATS_WHAT_NO_WATCH_SEES = """
import os, time
files = [os.memfd_create(str(number)) for number in range(4)]
for file in files:
    for _ in range(512):
        os.write(file, bytes(1 << 20))
"""
FORKS = """
import os
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            os.read(os.pipe()[0], 1)
        made += 1
except OSError:
    verdict = f"{made} processes"
"""


@pytest.mark.skipif(not may_make_groups(), reason="this process may not make control groups")
@pytest.mark.parametrize("tier", ["A", "B"])
@pytest.mark.asyncio
async def test_the_kernel_counts_for_a_job(tier: str) -> None:
    from tests.worker.harness import worker_process

    with worker_process(tier=tier, slots=1, memory_gib=1, disk_mib=64, shared_memory_mib=64, processes=64) as worker:
        async with worker.web() as web:
            done = await web.run(EATS_WHAT_NO_WATCH_SEES)
            assert done.ended is not None and done.ended.ending == "memory_limit"
            assert "control group (memory, pids)" in done.ended.isolation
            forked = await web.run(FORKS)
            assert forked.ended is not None and 50 <= int(forked.verdict.split()[0]) <= 64
            assert (await web.run("verdict = 'well'")).verdict == "well"
