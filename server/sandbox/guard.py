"""The guard: a small trusted process between the zygote and one job, alive as long as anything of the job is.

In tier A it is process 1 of the job's process namespace: when it ends, the kernel ends all others in there before
anybody can see that it has. Elsewhere it is the subreaper below which all of the job's processes stay, however often
they fork; it hunts them when the snippet's own process has ended, or when a SIGTERM says so, and then deletes the
job's files. Either way, once the guard has ended nothing of the job is left.

It is no process that the snippet could touch: signals are stopped by the process namespace, by Landlock or by the
user, tracing by seccomp, and its memory is closed to processes of its own user.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import NoReturn

from server.sandbox import kernel, processes
from server.sandbox.descriptors import keep_only
from server.sandbox.job import tell_failure

STATUS = 3
"""The descriptor of the guard that its lines to the zygote go to."""


def guard(status: int, is_init: bool, become_job: Callable[[], NoReturn], clean: Callable[[], None]) -> NoReturn:
    """Never returns. Forks the process that runs `become_job`, and tells on `status` how that process ended."""
    _set_aside_memory_pressure(-100)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # Waited for, not handled: what a handler raises is lost where Python happens to run a hook, after a fork for one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    if not is_init:
        processes.adopt_orphans()
    # Closed to others of its user. Set before the fork: the job opens itself again when it is confined.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    told = status
    try:
        main = os.fork()
        if main == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            become_job()
        keep_only({STATUS: status})
        told = STATUS
        ended = _wait_for(main, stops=not is_init)
        if ended is not None:
            os.write(STATUS, json.dumps({"status": ended}).encode() + b"\n")
    except BaseException as failure:  # noqa: BLE001 - all of the job ends with its guard: the zygote must learn why
        tell_failure(told, failure)
    finally:
        if not is_init:
            _finish(clean)
        os._exit(0)


def _wait_for(main: int, stops: bool) -> int | None:
    """The wait status of `main`, or None where a SIGTERM came before it ended; all that ends meanwhile is reaped.

    The kernel lets no signal of the namespace itself end its process 1, and nobody outside sends that one a SIGTERM.
    """
    while True:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == main:
            return status
        if process == 0 and signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM and stops:
            return None


def _finish(clean: Callable[[], None]) -> None:
    # Nothing else ends these: a process that cannot be ended now, stuck in a driver, is waited for.
    while not processes.reap():
        processes.end_descendants(os.getpid())
    clean()


def _set_aside_memory_pressure(adjustment: int) -> None:
    """Where memory runs out a job goes first, its guard much later."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(adjustment))
    except OSError:
        return
