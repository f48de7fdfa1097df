"""Turns a freshly forked child into a confined one: `confine` is called once, before any of the snippet runs.

Layers are applied from the outside in, each only where the kernel allows it, and what took effect is returned in
words: the service shows it under `isolation` in /healthz, so nobody has to guess how far a snippet is walled in.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from server.sandbox import kernel, landlock
from server.sandbox.code_access import closed_ancestor, code_folders

JOB_USER = 65534
"""The user (`nobody`) that a job becomes where the service runs as root."""

MIB = 1024 * 1024
GIB = 1024 * MIB


class Limits(BaseModel):
    """What one job may use. Memory and files are per process, as the kernel counts them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_seconds: int
    memory_bytes: int
    processes: int
    open_files: int
    file_bytes: int


def confine(folder: Path, limits: Limits) -> list[str]:
    """Confines this process, whose folder is `folder`. Returns the layers in force, in words."""
    layers: list[str] = []
    is_counted_alone = _leave_network(os.geteuid() == 0, layers)
    user = job_user()
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        layers.append("unprivileged user")
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    layers.append("no new privileges")
    # Changing the user cleared both: the signal at the parent's death, and /proc/self being ours (CUDA writes there).
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    _attempt(lambda: layers.extend(landlock.restrict(_writable_paths(folder))))
    _set_limits(limits, is_counted_alone)
    layers.append("resource limits")
    return layers


def job_user() -> int:
    """The user that jobs run as: another one where we are root and that other can read the code that it must run."""
    if os.geteuid() != 0:
        return os.geteuid()
    return 0 if any(map(closed_ancestor, code_folders())) else JOB_USER


def _leave_network(is_root: bool, layers: list[str]) -> bool:
    """Moves to an empty network of its own. True when processes are now counted for this job alone."""
    if is_root:
        if _attempt(lambda: kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC)):
            layers.append("own network namespace")
        return False
    user, group = os.geteuid(), os.getegid()
    if not _attempt(lambda: kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC)):
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    layers.extend(["own user namespace", "own network namespace"])
    return True


def _writable_paths(folder: Path) -> list[Path]:
    # CUDA needs its device files, shared memory, and the names of its own threads under /proc.
    return [folder, Path("/dev"), Path("/proc")]


def _set_limits(limits: Limits, is_counted_alone: bool) -> None:
    # The kernel counts processes by user: where the user has others, they must not use up the job's share.
    already = 0 if is_counted_alone else _processes_of_user(os.getuid())
    values = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_NPROC: limits.processes + already,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    for name, value in values.items():
        hard = resource.getrlimit(name)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # One second between the soft and the hard limit of CPU time tells "too long" (SIGXCPU) from "out of memory".
        room = 1 if name == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or allowed < hard) else 0
        resource.setrlimit(name, (allowed, allowed + room))


def _processes_of_user(user: int) -> int:
    count = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == user:
                    count += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return count


def _attempt(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True
