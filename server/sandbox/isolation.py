"""What differs between the tiers, and the steps that tiers A and B take alike. `Trusted` confines nothing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from server.sandbox import kernel, limits, processes, syscalls
from server.sandbox.config import SandboxConfig
from server.sandbox.leftovers import JOB_PREFIX, remove_tree
from server.sandbox.limits import JobLimits

_switched_off: frozenset[str] = frozenset()
"""Layers left out, "landlock" or "seccomp": only tests assign this, to see that their attacks then escape."""

_KEYCTL_JOIN_SESSION_KEYRING = 1


@dataclass(frozen=True)
class Place:
    """Where a job lives: its folder, as it sees it, and the user that it becomes, where it becomes another."""

    folder: Path
    user: int | None = None


class Isolation(Protocol):
    """A tier's means, in the order in which they are used."""

    layers: tuple[str, ...]
    """What confines a job, in words."""

    def enter(self) -> None:
        """In the process that becomes the keeper, before it forks the zygote."""

    def settle(self) -> Path:
        """In the zygote, right after it was forked; the folder to write to while modules are imported."""
        ...

    def make_place(self) -> Place:
        """In the zygote, for a new job."""
        ...

    def fork(self) -> int:
        """In the zygote: as `os.fork`, for a guard."""
        ...

    def surround(self, place: Place, limits: JobLimits) -> None:
        """In the guard, before it forks the job."""

    def confine(self, place: Place, limits: JobLimits) -> None:
        """In the job."""

    def clean(self, place: Place) -> None:
        """In the guard, once nothing of the job lives; or in the zygote, where the guard could not."""


class Trusted:
    """No confinement: limits, and an end to all that a job has started. For an operator's own snippets."""

    layers: tuple[str, ...] = ("resource limits",)

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config

    def enter(self) -> None:
        processes.adopt_orphans()

    def settle(self) -> Path:
        processes.adopt_orphans()
        folder = self._config.folder / f"{JOB_PREFIX}import"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def make_place(self) -> Place:
        return Place(Path(tempfile.mkdtemp(prefix=JOB_PREFIX, dir=self._config.folder)))

    def fork(self) -> int:
        return os.fork()

    def surround(self, place: Place, limits: JobLimits) -> None:
        processes.adopt_orphans()

    def confine(self, place: Place, limits: JobLimits) -> None:
        apply_limits(limits, is_counted_alone=False)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        go_first_where_memory_ends()

    def clean(self, place: Place) -> None:
        remove_tree(place.folder)


def apply_limits(wanted: JobLimits, is_counted_alone: bool) -> None:
    """`is_counted_alone` says that no process but the job's counts against its limit of processes."""
    limits.apply(wanted, 0 if is_counted_alone else processes.threads_of_user(os.getuid()))


def give_up_privileges() -> None:
    """Capabilities, keys, and the way to new privileges. Afterwards /proc/self is the process's own."""
    join_new_keyring()
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    # A change of user cleared it. CUDA writes its threads' names below /proc/self; a watch reads there.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    go_first_where_memory_ends()


def go_first_where_memory_ends() -> None:
    """The kernel then ends this process before any other on the machine."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return


def load_filters(programs: tuple[bytes, bytes]) -> None:
    if "seccomp" not in _switched_off:
        for program in programs:
            syscalls.load(program)


def is_on(layer: str) -> bool:
    return layer not in _switched_off


def join_new_keyring() -> None:
    """Leaves the session's keys behind. Where a container forbids the call, it forbids it to the job as well."""
    seccomp = syscalls.library()
    try:
        kernel.syscall(seccomp.resolve_syscall(seccomp.Arch.NATIVE, "keyctl"), _KEYCTL_JOIN_SESSION_KEYRING, None)
    except OSError:
        return
