"""The zygote's side: a process enters the sandbox once, imports what jobs need, and forks a job whenever it is asked.

    worker   starts `python -m …`, gives it the `SandboxConfig` through a pipe
      keeper   stays behind when `Sandbox.enter` forks; ends all when the worker or the zygote ends (`keeper.py`)
        zygote   `enter` returns here: one thread, in tier A process 1 of its namespaces (`namespaces.py`)
          guard    one for each job (`guard.py`)
            job      confined (`confinement.py`), runs `main`

The worker watches and ends a job by the guard's pidfd (`Job.ended`), which it is sent over a socket: it does not need
the zygote for that, not even one that stands still (`watch.py`).
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from server.sandbox import processes
from server.sandbox.config import NoSandbox, SandboxConfig
from server.sandbox.guard import guard
from server.sandbox.job import become_job
from server.sandbox.keeper import keep
from server.sandbox.leftovers import JOB_PREFIX, remove_job_folders, remove_tree
from server.sandbox.limits import JobLimits, apply
from server.sandbox.watch import end_guard
from server.wire.messages import Tier

_LONGEST_STATUS = 65536


@dataclass(frozen=True)
class Exit:
    """How a job's own process ended; both None where it was ended together with all of the job.

    `failure` says why the job could not be confined: `main` then never ran. `processor_seconds` is of the job and
    its guard, as far as their parents have waited for them, and from the fork on: a spare's preparation is in it.
    """

    exit_code: int | None
    signal: int | None
    processor_seconds: float
    failure: str | None = None


class Job:
    """One job as the zygote sees it. Each is waited for once, with `wait`."""

    def __init__(self, pid: int, tier: Tier, status: int, folder: Path) -> None:
        self.pid = pid
        """The guard's process id, as the zygote sees it."""
        self.folder = folder
        """The job's folder, as the job sees it."""
        self.ended = os.pidfd_open(pid)
        """A pidfd of the guard: readable when the job is over and nothing of it is left. `wait` closes it."""
        self._tier: Tier = tier
        self._status = status

    def kill(self) -> None:
        """Begins to end the job. Does nothing where it is over."""
        end_guard(self.ended, self._tier)

    def wait(self) -> Exit:
        """Waits until the job is over and nothing of it is left."""
        _, guard_status, usage = os.wait4(self.pid, 0)
        if self._tier != "A" and guard_status != 0:
            self._finish_for_guard()
        told = self._told()
        status = told.get("status")
        os.close(self._status)
        os.close(self.ended)
        return Exit(
            exit_code=os.WEXITSTATUS(status) if isinstance(status, int) and os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if isinstance(status, int) and os.WIFSIGNALED(status) else None,
            processor_seconds=usage.ru_utime + usage.ru_stime,
            failure=str(told["failure"]) if "failure" in told else None,
        )

    def _finish_for_guard(self) -> None:
        """Does what a guard that was killed left undone. Its orphans have come to this process, a subreaper too."""

    def _told(self) -> dict[str, object]:
        told: dict[str, object] = {}
        for line in os.read(self._status, _LONGEST_STATUS).splitlines():
            told |= json.loads(line)
        return told


class Sandbox:
    """The sandbox of one zygote. `enter` comes first, in a process of one thread that has imported little."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self.job_folder = config.folder / f"{JOB_PREFIX}import"
        """Where modules may write while they are imported, after `enter`. In tier A each job's folder has this path."""

    def enter(self) -> None:
        """Returns in a child of this process, which then is the zygote; this process stays behind as its keeper.

        Raises OSError where the kernel refuses what `choose_tier` found possible.
        """
        worker = os.pidfd_open(os.getppid())
        folder = self._config.folder
        if self._config.tier != "trusted":
            raise NoSandbox(f"Tier {self._config.tier} cannot be entered yet.")
        remove_job_folders(folder)
        processes.adopt_orphans()
        keeper = os.getpid()
        zygote = os.fork()
        if zygote != 0:
            keep(zygote, worker, folder)
        os.close(worker)
        processes.die_with_parent(keeper, signal.SIGKILL)
        processes.adopt_orphans()
        self.job_folder.mkdir(mode=0o700, exist_ok=True)

    def fork(self, limits: JobLimits, descriptors: Mapping[int, int], main: Callable[[Path], NoReturn]) -> Job:
        """Forks a job that runs `main`, confined, with the folder that it may write to.

        `descriptors` are all that the job has, from the number that it shall have there to the one that it has here;
        they stay open here. 0, 1 and 2 are /dev/null unless they are named. `main` is called in the job's process and
        must leave it with `os._exit`. A spare's `main` waits for its job on a descriptor, and then calls
        `limits.begin`: until then no limit on processor time holds.
        """
        folder = Path(tempfile.mkdtemp(prefix=JOB_PREFIX, dir=self._config.folder))
        told, status = os.pipe()
        guard_process = os.fork()
        if guard_process == 0:
            try:
                self._become_guard(limits, descriptors, main, folder, status)
            finally:
                os._exit(1)
        os.close(status)
        return Job(guard_process, self._config.tier, told, folder)

    def _become_guard(
        self,
        limits: JobLimits,
        descriptors: Mapping[int, int],
        main: Callable[[Path], NoReturn],
        folder: Path,
        status: int,
    ) -> NoReturn:
        def start() -> NoReturn:
            become_job(
                status=status,
                descriptors=descriptors,
                folder=folder,
                confine=lambda: apply(limits, processes.threads_of_user(os.getuid())),
                main=main,
            )

        processes.die_with_parent(os.getppid(), signal.SIGTERM)
        guard(status, is_init=False, become_job=start, clean=lambda: _remove(folder))


def _remove(folder: Path) -> None:
    remove_tree(folder)
