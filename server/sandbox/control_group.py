"""A control group for each job, where version 2 of them may be written: the kernel then counts what no watch can see.

Groups are made below that of the worker, and only where it is marked as the worker's to divide, as systemd marks that
of a service with `Delegate=yes`. No other is touched, though root may write to all: a group with processes has
no groups below it that limit anything, so its processes move to one, `LEAF`, first.

    GROUP/fusionscope            the worker, and whatever else was in GROUP
    GROUP/jobs/PROCESS-NUMBER    a job of the worker with that process id: its guard and all below it

A guard enters its group itself, before it forks the job: it is given the opened file, since it could not open it. The
kernel holds whoever opened the file to be the one who may move it (Linux 5.16).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from server.sandbox import kernel
from server.sandbox.config import FIRST_JOB_USER
from server.sandbox.limits import JobLimits

LEAF = "fusionscope"
_JOBS = "jobs"
_NEEDED = ("memory", "pids")
_PERIOD_MICROSECONDS = 100_000
_GUARD = 1
"""The guard is in the group too."""


class ControlGroup:
    """One job's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open_processes(self) -> int:
        """A descriptor for `enter`. Raises `OSError`."""
        return os.open(self.folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has ended a process of the job since its group had no memory left."""
        with contextlib.suppress(OSError, ValueError):
            return int(_table(self.folder / "memory.events").get("oom_kill", "0")) > 0
        return False

    def remove(self) -> None:
        """Once nothing of the job is left. What cannot be removed yet is when a worker starts next."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()


class ControlGroups:
    """The groups of one worker's jobs. Raises `OSError` where the group of this process cannot be divided."""

    def __init__(self, tier_a: bool, threads: int, processors: int, own: Path | None = None) -> None:
        """`own` is the folder of the group that is to be divided; by default it is looked for."""
        self._tmpfs_counts = tier_a
        self._processor_time = (
            f"{threads * _PERIOD_MICROSECONDS} {_PERIOD_MICROSECONDS}" if threads < processors else ""
        )
        group = own or _own_group()
        given = (group / "cgroup.controllers").read_text().split()
        if missing := [name for name in _NEEDED if name not in given]:
            raise OSError(f"the group has no control of {' and '.join(missing)}")
        wanted = [name for name in (*_NEEDED, "cpu") if name in given]
        _make_room(group)
        self._jobs = group / _JOBS
        self._jobs.mkdir(exist_ok=True)
        for folder in (group, self._jobs):
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
        if "cpu" not in wanted:
            self._processor_time = ""
        _remove_leftovers(self._jobs)
        self._numbers = itertools.count()
        self._try()
        self.layer = f"control group ({', '.join([*_NEEDED, *(['cpu'] if self._processor_time else [])])})"
        """What it adds to what confines a job, in words."""

    def make(self, limits: JobLimits) -> ControlGroup:
        """The group of a job that is about to be forked. Raises `OSError`."""
        made = self._make()
        try:
            for name, value in self._values(limits).items():
                (made.folder / name).write_text(value)
        except OSError:
            made.remove()
            raise
        return made

    def _make(self) -> ControlGroup:
        made = ControlGroup(self._jobs / f"{os.getpid()}-{next(self._numbers)}")
        made.folder.mkdir()
        return made

    def _try(self) -> None:
        """Enters a group as a guard would, from another process. Raises `OSError` where that is refused."""
        made = self._make()
        try:
            processes = made.open_processes()
            guard = os.fork()
            if guard == 0:
                _enter_as_guard(processes)
            os.close(processes)
            if os.waitpid(guard, 0)[1] != 0:
                raise OSError("a job's process may not enter its group here")
        finally:
            made.remove()

    def _values(self, limits: JobLimits) -> Mapping[str, str]:
        # In tier A the job's files lie in memory. The watch ends a job that takes more than its part of it.
        memory = limits.memory_bytes + limits.shared_memory_bytes + (limits.disk_bytes if self._tmpfs_counts else 0)
        values = {"memory.max": str(memory), "pids.max": str(limits.processes + _GUARD)}
        if (self._jobs.parent / LEAF / "memory.swap.max").exists():
            values["memory.swap.max"] = "0"
        return values | ({"cpu.max": self._processor_time} if self._processor_time else {})


def enter(processes: int) -> None:
    """Moves this process to the group whose `open_processes` it was given. Raises `OSError`."""
    os.write(processes, b"0")


def _enter_as_guard(processes: int) -> NoReturn:
    """With no more rights than a zygote of tier A has, where there may be such."""
    try:
        if os.geteuid() == 0:
            os.setresuid(FIRST_JOB_USER, FIRST_JOB_USER, FIRST_JOB_USER)
        with contextlib.suppress(OSError):
            kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWCGROUP)
        enter(processes)
        os._exit(0)
    except OSError:
        os._exit(1)


def _own_group() -> Path:
    """The folder of the group that is this worker's to divide. Raises `OSError` where there is none."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    inside = next((line[len("0::") :] for line in lines if line.startswith("0::")), None)
    mounts = (line.partition(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines())
    place = next((front.split()[4] for front, _, kind in mounts if kind.startswith("cgroup2 ")), None)
    if inside is None or place is None:
        raise OSError("this system has no control groups of version 2")
    group = Path(place, inside.lstrip("/"))
    if group.name == LEAF:  # of an earlier worker here
        group = group.parent
    if not _is_delegated(group):
        raise OSError(f"the group {inside} is not delegated to this service")
    return group


def _is_delegated(group: Path) -> bool:
    """systemd marks what it delegates: https://systemd.io/CGROUP_DELEGATION."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _make_room(group: Path) -> None:
    leaf = group / LEAF
    leaf.mkdir(exist_ok=True)
    for process in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(process)


def _remove_leftovers(jobs: Path) -> None:
    for folder in jobs.iterdir():
        worker = folder.name.partition("-")[0]
        if folder.is_dir() and worker.isdigit() and not Path("/proc", worker).exists():
            ControlGroup(folder).remove()


def _table(path: Path) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
