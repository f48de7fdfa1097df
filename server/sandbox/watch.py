"""The worker's side: what a job uses, and its end, seen from outside of all namespaces.

A job is known by a pidfd of its guard, which the zygote sends. No process id is ever signalled: it could be another's
by then.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from server.sandbox import processes
from server.sandbox.limits import JobLimits
from server.wire.messages import Tier


@dataclass(frozen=True)
class Usage:
    """What a job uses now, all of its processes together."""

    memory_bytes: int
    disk_bytes: int
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
    """Watches one job. `guard` is a pidfd of its guard, which stays the caller's; `folder` is `Job.folder`."""

    def __init__(self, guard: int, tier: Tier, folder: Path) -> None:
        self.process = processes.process_of(guard)
        """The guard's process id, as this process sees it."""
        self._guard = guard
        self._tier: Tier = tier
        self._folder = folder

    def usage(self) -> Usage:
        """Cheap enough to be asked every 50 ms."""
        return Usage(memory_bytes=0, disk_bytes=0, processes=len(processes.descendants(self.process)))

    def over(self, limits: JobLimits) -> Literal["memory_limit", "disk_limit"] | None:
        """Which limit the job has overstepped."""
        usage = self.usage()
        if usage.memory_bytes > limits.memory_bytes:
            return "memory_limit"
        return "disk_limit" if usage.disk_bytes > limits.disk_bytes else None

    def kill(self) -> None:
        """Begins to end the job, without the zygote's help. The pidfd is readable when it is over."""
        end_guard(self._guard, self._tier)

    def close(self) -> None:
        """Lets go of what was opened to look at the job."""
