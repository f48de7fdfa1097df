"""The keeper: what is left of the process that the worker started, once the zygote was forked from it.

It waits for one of three things: the zygote ends, the worker ends, or a SIGTERM or SIGINT says that it should. Then it
ends everything below it. It imports nothing, handles no data and holds no descriptor of others, so there is little in
it that could fail. It ends as the zygote did, and with 128 and the signal's number where that was a signal.

    worker ended    the keeper sees it (pidfd) and ends all; the zygote would read the end of its socket besides
    zygote ended    the keeper ends all; in tier A the kernel does, since the zygote is process 1 of its namespace
    keeper ended    the kernel ends the zygote, then the guards hear of that and end their jobs (`guard.py`)
"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from types import FrameType
from typing import NoReturn

from server.sandbox import processes
from server.sandbox.descriptors import keep_only
from server.sandbox.leftovers import remove_job_folders


class _StopRequested(Exception):
    pass


def keep(zygote: int, worker: int, folder: Path | None) -> NoReturn:
    """Never returns. `worker` is a pidfd; `folder` is where jobs' folders lie, None where they vanish by themselves."""
    ended = os.pidfd_open(zygote)
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _stop)
        keep_only({2: 2, 3: ended, 4: worker})
        waiting = select.poll()
        waiting.register(3, select.POLLIN)
        waiting.register(4, select.POLLIN)
        waiting.poll()
    except _StopRequested:
        pass
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    status = _end_all(zygote)
    if folder is not None:
        remove_job_folders(folder)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _stop(number: int, frame: FrameType | None) -> None:
    raise _StopRequested


def _end_all(zygote: int) -> int:
    """Ends whatever lives below, and returns the zygote's wait status."""
    signalled, status = os.waitpid(zygote, os.WNOHANG)
    if signalled == 0:
        os.kill(zygote, signal.SIGKILL)
        _, status = os.waitpid(zygote, 0)
    if not processes.reap() and not processes.end_descendants(os.getpid()):
        os.write(2, b"Some processes of the last jobs could not be ended.\n")
    return status
