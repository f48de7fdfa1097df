"""The zygote's side: a process enters the sandbox once, and forks a job whenever it is asked.

    worker   starts `python -m …`, gives it the `SandboxConfig` through a pipe
      keeper   stays behind when `Sandbox.enter` forks; ends all when the worker or the zygote ends (`keeper.py`)
        zygote   `enter` returns here: one thread, in tier A process 1 of its namespaces (`namespaces.py`)
          guard    one for each job (`guard.py`)
            job      confined (`confinement.py`), runs `main`

The worker watches and ends a job by the guard's pidfd (`Job.ended`), which it is sent over a socket: it does not need
the zygote for that, not even one that stands still (`watch.py`).
"""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from server.sandbox import control_group, kernel, processes
from server.sandbox.config import SandboxConfig
from server.sandbox.guard import guard
from server.sandbox.isolation import Isolation, Place, Trusted
from server.sandbox.job import become_job, tell_failure
from server.sandbox.keeper import keep
from server.sandbox.landlocked import Landlocked
from server.sandbox.leftovers import remove_job_folders
from server.sandbox.limits import JobLimits
from server.sandbox.namespaces import Namespaces
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

    def __init__(self, pid: int, tier: Tier, status: int, folder: Path, finish: Callable[[int, bool], None]) -> None:
        self.pid = pid
        """The guard's process id, as the zygote sees it."""
        self.folder = folder
        """The job's folder, as the job sees it."""
        self.ended = os.pidfd_open(pid)
        """A pidfd of the guard: readable when the job is over and nothing of it is left. `wait` closes it."""
        self._tier: Tier = tier
        self._status = status
        self._finish = finish

    def kill(self) -> None:
        """Begins to end the job. Does nothing where it is over."""
        end_guard(self.ended, self._tier)

    def wait(self) -> Exit:
        """Waits until the job is over and nothing of it is left."""
        _, guard_status, usage = os.wait4(self.pid, 0)
        self._finish(self.pid, guard_status != 0)
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

    def _told(self) -> dict[str, object]:
        told: dict[str, object] = {}
        for line in os.read(self._status, _LONGEST_STATUS).splitlines():
            told |= json.loads(line)
        return told


class Sandbox:
    """The sandbox of one zygote. `enter` comes first, in a process of one thread; what that has imported, its keeper
    has too."""

    def __init__(self, config: SandboxConfig) -> None:
        """Raises `NoSandbox` where the tier plainly cannot work here."""
        self._config = config
        self._isolation = _ISOLATIONS[config.tier](config)
        self._guards: set[int] = set()
        self.job_folder = config.folder
        """Where modules may write while they are imported, after `enter`. In tier A each job's folder has this path."""

    @property
    def layers(self) -> tuple[str, ...]:
        """What confines a job, in words."""
        return self._isolation.layers

    def enter(self) -> None:
        """Returns in a child of this process, which then is the zygote; this process stays behind as its keeper.

        The keeper ends all once the process that started it has ended. Raises OSError or `NoSandbox` where the
        kernel refuses what `choose_tier` found possible.
        """
        worker = os.pidfd_open(os.getppid())
        if self._config.tier != "A":
            remove_job_folders(self._config.folder)
        self._isolation.enter()
        keeper = os.getpid()
        zygote = os.fork()
        if zygote != 0:
            keep(zygote, worker, self._config.folder if self._config.tier != "A" else None)
        os.close(worker)
        processes.die_with_parent(keeper, signal.SIGKILL)
        # Not traced, and not read, by processes of its own user.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        self.job_folder = self._isolation.settle()

    def fork(
        self,
        limits: JobLimits,
        descriptors: Mapping[int, int],
        main: Callable[[Path], NoReturn],
        group: int | None = None,
    ) -> Job:
        """Forks a job that runs `main`, confined, with the folder that it may write to.

        `descriptors` are all that the job has, from the number that it shall have there to the one that it has here;
        they stay open here. 0, 1 and 2 are /dev/null unless they are named. `group` are the processes of its control
        group, opened. `main` is called in the job's process and must leave it with `os._exit`. A spare's `main` waits
        for its job on a descriptor, and then calls `limits.begin`: until then no limit on processor time holds. Raises
        OSError where the machine has no process or no space left.
        """
        place = self._isolation.make_place()
        told, status = os.pipe()
        zygote = os.getpid()
        try:
            guard_process = self._isolation.fork()
        except OSError:
            os.close(told)
            os.close(status)
            self._isolation.clean(place)
            raise
        if guard_process == 0:
            try:
                if group is not None:
                    control_group.enter(group)
                self._become_guard(limits, descriptors, main, place, status, zygote)
            except BaseException as failure:  # noqa: BLE001 - a guard must never return into the zygote's code
                tell_failure(status, failure)
            finally:
                os._exit(1)
        os.close(status)
        self._guards.add(guard_process)
        return Job(guard_process, self._config.tier, told, place.folder, functools.partial(self._finish, place))

    def _become_guard(
        self,
        limits: JobLimits,
        descriptors: Mapping[int, int],
        main: Callable[[Path], NoReturn],
        place: Place,
        status: int,
        zygote: int,
    ) -> NoReturn:
        isolation = self._isolation

        own = os.getpid()

        def start() -> NoReturn:
            become_job(
                guard=own,
                status=status,
                descriptors=descriptors,
                folder=place.folder,
                confine=lambda: isolation.confine(place, limits),
                main=main,
            )

        is_init = self._config.tier == "A"
        processes.die_with_parent(zygote, signal.SIGKILL if is_init else signal.SIGTERM)
        isolation.surround(place, limits)
        guard(status, is_init=is_init, become_job=start, clean=lambda: isolation.clean(place))

    def _finish(self, place: Place, guard_process: int, is_left_undone: bool) -> None:
        """Does what a guard that was killed left undone. Its orphans have come to this process, a subreaper too."""
        self._guards.discard(guard_process)
        if not is_left_undone or self._config.tier == "A":
            return
        processes.end_descendants(os.getpid(), without=self._guards)
        self._isolation.clean(place)


_ISOLATIONS: dict[Tier, Callable[[SandboxConfig], Isolation]] = {
    "A": Namespaces,
    "B": Landlocked,
    "trusted": Trusted,
}
