"""Finding and ending every process that a job has left, however it tried to hide.

A job may fork, start sessions of its own and let its parents die. It cannot leave the tree of a process that has
made itself a "subreaper": orphans become that process's children. So the hunt walks down from there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from server.sandbox import kernel

_STATE, _PARENT = 0, 1


def adopt_orphans() -> None:
    """From now on orphans among this process's descendants become its children."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, number: signal.Signals) -> None:
    """Asks the kernel for a signal when the parent's thread that forked this process ends.

    `parent` is its process id: where it was gone before the kernel was asked, this process ends at once.
    """
    kernel.prctl(kernel.PR_SET_PDEATHSIG, number)
    # A parent in an outer process namespace has no number here, and the namespace ends with it.
    if os.getppid() not in (parent, 0):
        os._exit(1)


def process_of(pidfd: int) -> int:
    """The process id that a pidfd stands for, as this process's /proc numbers it; raises ProcessLookupError."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:") and (process := int(line.split()[1])) > 0:
            return process
    raise ProcessLookupError(f"descriptor {pidfd} stands for no living process")


def descendants(ancestor: int, without: Collection[int] = ()) -> list[int]:
    """The living processes below `ancestor`, parents before children. Zombies are left out.

    So are the processes of `without`, and all below them.
    """
    children: dict[int, list[int]] = {}
    zombies: set[int] = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # The command's name, in parentheses, may contain anything: fields are counted from its end.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[_PARENT]), []).append(int(entry))
        if fields[_STATE] in (b"Z", b"X"):
            zombies.add(int(entry))
    found: list[int] = []
    frontier = [ancestor]
    while frontier:
        below = [process for process in children.get(frontier.pop(), []) if process not in without]
        found.extend(below)
        frontier.extend(below)
    return [process for process in found if process not in zombies]


def end_descendants(ancestor: int, patience_seconds: float = 5.0, without: Collection[int] = ()) -> bool:
    """Kills everything below `ancestor`, but for `without` and all below, and reaps what is ours.

    True when nothing is left. All are stopped before the first is killed: a process that forks as fast as it is killed
    stands still while the others die.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        targets = descendants(ancestor, without)
        stopped: set[int] = set()
        while fresh := [process for process in targets if process not in stopped]:
            signal_each(fresh, signal.SIGSTOP)
            stopped.update(fresh)
            targets = descendants(ancestor, without)
        signal_each(targets, signal.SIGKILL)
        _reap_each(targets) if without else reap()
        if not targets and not descendants(ancestor, without):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)


def reap() -> bool:
    """Collects every child that has ended; does not wait for those that have not. True when none is left.

    A subreaper without children has no descendants either.
    """
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if process == 0:
            return False


def _reap_each(targets: list[int]) -> None:
    """Collects those of `targets` that have ended and are children; others of our children are waited for elsewhere."""
    for process in targets:
        try:
            os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            continue


def signal_each(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            continue


def threads_of_user(user: int) -> int:
    """How many threads, hence processes as the kernel counts them for a limit, run as `user`."""
    count = 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == user:
                    count += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return count
