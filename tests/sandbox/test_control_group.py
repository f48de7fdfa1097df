"""A control group for each job: what is written where, on a tree of files; and what the kernel then does, where this
process may make groups. The command that runs the second in a machine of its own is in docs/operators.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.sandbox import ControlGroup, ControlGroups
from server.sandbox.control_group import LEAF, enter
from tests.sandbox.harness import LIMITS
from tests.worker.harness import worker_process


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


EATS = """
import os
for number in range(64):
    os.write(os.memfd_create(str(number)), bytes(16 << 20))
"""
FORKS = """
import os, time
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made, flush=True)
os.killpg(0, 9)
"""
real = pytest.mark.skipif(not may_make_groups(), reason="this process may not make control groups")


def run_in(group: ControlGroup, program: str) -> subprocess.CompletedProcess[str]:
    processes = group.open_processes()
    try:
        return subprocess.run(
            [sys.executable, "-c", program],
            preexec_fn=lambda: enter(processes),
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(processes)


@real
def test_the_kernel_ends_what_takes_too_much_and_says_so() -> None:
    groups = ControlGroups(tier_a=False, threads=1, processors=1)
    made = groups.make(LIMITS)
    assert run_in(made, EATS).returncode == -9 and made.ran_out_of_memory()
    made.remove()
    assert not made.folder.exists()
    other = groups.make(LIMITS)
    forked = run_in(other, FORKS)
    assert 0 < int(forked.stdout) <= LIMITS.processes and not other.ran_out_of_memory()
    other.remove()


@real
@pytest.mark.parametrize("tier", ["A", "B"])
@pytest.mark.asyncio
async def test_a_worker_puts_each_job_in_a_group(tier: str) -> None:
    with worker_process(tier=tier, slots=1, spares=1, memory_gib=0.5, shared_memory_mib=64) as worker:
        async with worker.web() as web:
            done = await web.run(f"{EATS}\nverdict = 'escaped'", memory_bytes=2**29)
            assert done.ended is not None and done.ended.ending == "memory_limit"
            assert "control group (memory, pids)" in done.ended.isolation
            assert (await web.run("verdict = 'well'")).verdict == "well"
