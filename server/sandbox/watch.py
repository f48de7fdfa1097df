"""The worker's side: what a job uses, and its end, seen from outside of all namespaces.

A job is known by a pidfd of its guard, which the zygote sends. No process id of its own is ever signalled as long as
the guard does its work: it could be another's by then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from server.sandbox import kernel, measures, processes
from server.sandbox.limits import JobLimits
from server.wire.messages import Tier

_PATIENCE_SECONDS = 3.0
"""How long a guard may take to end its job before the watch does."""

_CLOSED_SECONDS, _CLOSED_LOOKS = 0.5, 3
"""How long, and in how many looks on end, some process of a job may keep to itself what it holds."""

_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Usage:
    """What a job uses now, all of its processes together.

    `memory_bytes` is private and shared memory and the files in /dev/shm, which `disk_bytes` counts too, beside the
    job's folder. In tier A the job's folder lies in memory as well, and counts as disk alone.
    """

    memory_bytes: int
    disk_bytes: int
    disk_files: int
    processes: int


def end_guard(guard: int, tier: Tier) -> None:
    """Begins to end the job whose guard the pidfd `guard` stands for; does nothing where it is over.

    In tier A the kernel ends the job with its guard. Elsewhere the guard ends the job, and then itself.
    """
    try:
        signal.pidfd_send_signal(guard, signal.SIGKILL if tier == "A" else signal.SIGTERM)
    except ProcessLookupError:
        return


class Watch:
    """Watches one job. `guard` is a pidfd of its guard, which stays the caller's; `folder` is `Job.folder`.

    Raises ProcessLookupError where the job is over.
    """

    _can_look = False
    """Whether any job has been looked into: where none can be, it is no fault of a job's."""

    def __init__(self, guard: int, tier: Tier, folder: Path) -> None:
        self.process = processes.process_of(guard)
        """The guard's process id, as this process sees it."""
        self._guard = guard
        self._tier: Tier = tier
        self._folder = folder
        self._asked_to_end: float | None = None
        self._places: dict[Path, int] = {}
        self._family: list[int] = []
        self._closed_since: float | None = None
        self._closed_looks = 0
        self._keeps_closed = False
        self._nameless = measures.Paced(self._measure_nameless, measures.Nameless())
        self._proportional = measures.Paced(self._measure_proportional, 0)
        self._disk = measures.Paced(self._measure_disk, measures.Held(0, 0))
        self._shared = measures.Paced(self._measure_shared, measures.Held(0, 0))

    def usage(self) -> Usage:
        """A bound, cheap enough for every 50 ms: pages that are still the zygote's count for each process."""
        self._look()
        return self._usage(sum(map(measures.private_bytes, self._family)))

    def proportional_usage(self) -> Usage:
        """What it uses with its part alone of pages that it shares: expensive, and so at times a little old."""
        self._look()
        return self._usage(self._proportional())

    def over(self, limits: JobLimits) -> Literal["memory_limit", "disk_limit"] | None:
        """Which limit the job has overstepped. A bound that is too high is confirmed by what it proportionally uses.

        A job whose memory cannot be counted counts as one that takes too much: who runs a program that nobody may read
        is hidden by the kernel from all but root.
        """
        usage = self.usage()
        if self._keeps_closed:
            return "memory_limit"
        if usage.disk_bytes > limits.disk_bytes + limits.shared_memory_bytes or usage.disk_files > limits.disk_files:
            return "disk_limit"
        if self._shared().bytes > limits.shared_memory_bytes:
            return "memory_limit"
        if usage.memory_bytes <= limits.memory_bytes:
            return None
        confirmed = self._usage(self._proportional())
        return "memory_limit" if confirmed.memory_bytes > limits.memory_bytes else None

    def kill(self) -> None:
        """Begins to end the job, without the zygote's help. The pidfd is readable when it is over.

        May be called again and again: a guard that does not end its job in time is then ended with it.
        """
        now = time.monotonic()
        if self._asked_to_end is None:
            self._asked_to_end = now
        if now - self._asked_to_end < _PATIENCE_SECONDS or self._tier == "A":
            end_guard(self._guard, self._tier)
            return
        try:
            signal.pidfd_send_signal(self._guard, signal.SIGSTOP)
            processes.signal_each(processes.descendants(self.process), signal.SIGKILL)
            signal.pidfd_send_signal(self._guard, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Lets go of the job's folders, which live on as long as they are looked at."""
        for descriptor in self._places.values():
            os.close(descriptor)
        self._places.clear()

    def _look(self) -> None:
        try:
            self._family = measures.family(self.process)
        except FileNotFoundError:
            self._family = processes.descendants(self.process)
        if self._tier == "A" and self._family and not self._places:
            self._open_places(self._family[0])

    def _open_places(self, process: int) -> None:
        """Opens the job's mounts through a process that sees them. The guard has made them before it forks."""
        try:
            for path in (self._folder, _SHARED_MEMORY):
                self._places[path] = os.open(f"/proc/{process}/root{path}", os.O_PATH | os.O_DIRECTORY)
        except OSError:
            self.close()

    def _usage(self, private: int) -> Usage:
        disk, shared, nameless = self._disk(), self._shared(), self._nameless()
        if self._tier == "A":
            # Deleted files of these mounts are counted with the mounts.
            on_disk, own = 0, [os.fstat(descriptor).st_dev for descriptor in self._places.values()]
        else:
            own = [os.stat(self._folder.parent).st_dev]
            on_disk = nameless.of(own)
        return Usage(
            memory_bytes=private + shared.bytes + nameless.of(own, inverted=True),
            disk_bytes=disk.bytes + on_disk + shared.bytes,
            disk_files=disk.files,
            processes=len(self._family),
        )

    def _measure_nameless(self) -> measures.Nameless:
        with self._as_who_may_look():
            found = measures.nameless(self._family)
        now = time.monotonic()
        Watch._can_look = Watch._can_look or found.seen > 0
        if not found.closed:
            self._closed_since, self._closed_looks = None, 0
        elif Watch._can_look:
            self._closed_since = self._closed_since or now
            self._closed_looks += 1
            has_lasted = now - self._closed_since > _CLOSED_SECONDS
            self._keeps_closed = has_lasted and self._closed_looks >= _CLOSED_LOOKS
        return found

    def _measure_proportional(self) -> int:
        total = 0
        with self._as_who_may_look():
            for process in self._family:
                part = measures.proportional_bytes(process)
                # Where this may not be asked, the bound has to be believed.
                total += measures.private_bytes(process) if part is None else part
        return total

    def _as_who_may_look(self) -> AbstractContextManager[None]:
        """A root without CAP_SYS_PTRACE, such as a container's, sees less of a job than the job's own user does."""
        user = self._job_user() if self._tier == "B" else None
        if user is None or os.geteuid() != 0:
            return contextlib.nullcontext()
        return kernel.reading_as(user, user)

    def _measure_disk(self) -> measures.Held:
        return self._mounted(self._folder) if self._tier == "A" else measures.held_by(self._folder)

    def _measure_shared(self) -> measures.Held:
        if self._tier == "A":
            return self._mounted(_SHARED_MEMORY)
        user = self._job_user()
        return measures.Held(0, 0) if user is None else measures.held_by(_SHARED_MEMORY, user)

    def _mounted(self, path: Path) -> measures.Held:
        if path not in self._places:
            return measures.Held(0, 0)
        found = os.statvfs(self._places[path])
        return measures.Held((found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree)

    def _job_user(self) -> int | None:
        """The job's own user; None where it has none, and then it cannot write to /dev/shm."""
        try:
            user = os.stat(self._folder).st_uid
        except OSError:
            return None
        return None if user == os.geteuid() else user
