"""Tier B: no namespaces, so it works in a container with ordinary settings and where user namespaces are forbidden.

Landlock lists what may be read and written, seccomp is stricter than in tier A, and where the worker is root each job
has a user of its own. Disk and /dev/shm have no limit of their own here: the watch ends a job that uses too much.

Landlock does not cover modes, owners, times, inotify, and, before some versions, signals and truncation. A job that has
its own user is kept from others' by that; one that shares the worker's user is kept from them by seccomp. What stays
visible is whether a file exists, and how large it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from server.sandbox import allowance, landlock, syscalls
from server.sandbox.code_access import closed_ancestor, open_to_others
from server.sandbox.config import FIRST_JOB_USER, NoSandbox, SandboxConfig
from server.sandbox.isolation import Place, Trusted, apply_limits, give_up_privileges, is_on, load_filters
from server.sandbox.limits import JobLimits
from server.sandbox.users import free_user, remove_shared_memory_of

_SHARED_MEMORY = Path("/dev/shm")
_FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/devices"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/mmap_min_addr", "/proc/sys/kernel/osrelease"),
)


class Landlocked(Trusted):
    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._version = landlock.version()
        if not self._version:
            raise NoSandbox("The kernel has no Landlock: it needs Linux 5.13, with landlock among its lsm= modules.")
        self._is_root = os.geteuid() == 0
        self._users: dict[Path, int] = {}
        self._programs = None if self._needs_own_program() else syscalls.programs(self._rules())
        self.layers = (
            *(("a user of its own",) if self._is_root else ()),
            f"Landlock (version {self._version}): reads and writes of listed folders only",
            "seccomp",
            "no capabilities",
            "no new privileges",
            "resource limits",
        )

    def enter(self) -> None:
        super().enter()
        if self._is_root:
            os.chmod(self._config.folder, 0o711)
            if (closed := closed_ancestor(self._config.folder.resolve())) is not None:
                raise NoSandbox(f"Jobs run as users of their own, who may not enter {closed}: choose another folder.")
            open_to_others(self._config.readable, self._config.folder)

    def make_place(self) -> Place:
        folder = super().make_place().folder
        if not self._is_root:
            return Place(folder)
        self._users = {folder: user for folder, user in self._users.items() if folder.exists()}
        user = free_user(self._config.first_uid or FIRST_JOB_USER, self._users.values())
        self._users[folder] = user
        os.chown(folder, user, user)
        return Place(folder, user)

    def confine(self, place: Place, limits: JobLimits) -> None:
        if place.user is not None:
            os.setgroups([])
            os.setresgid(place.user, place.user, place.user)
            os.setresuid(place.user, place.user, place.user)
        apply_limits(limits, is_counted_alone=place.user is not None)
        give_up_privileges()
        programs = self._programs or syscalls.programs(self._rules())
        if is_on("landlock"):
            landlock.confine(
                read=(*allowance.readable(self._config), *map(Path, _FACTS)),
                write=(place.folder, *((_SHARED_MEMORY,) if place.user is not None else ())),
                devices=allowance.devices(self._config.uses_gpu),
                own=(Path(f"/proc/{os.getpid()}"),),
                list_only=[Path(path) for path in sys.path if path.startswith("/") and path != "/"],
            )
        load_filters(programs)

    def clean(self, place: Place) -> None:
        super().clean(place)
        if place.user is not None:
            remove_shared_memory_of(place.user)

    def _needs_own_program(self) -> bool:
        return not self._is_root and self._version < landlock.SCOPES_SIGNALS

    def _rules(self) -> syscalls.Rules:
        return syscalls.Rules(
            allows_memory_placement=self._config.uses_gpu,
            allows_listening=self._config.uses_gpu,
            guards_metadata=not self._is_root,
            guards_processes=not self._is_root,
            guards_signals_of=os.getpid() if self._needs_own_program() else None,
            guards_truncation=self._version < landlock.COVERS_TRUNCATION,
        )
