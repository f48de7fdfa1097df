"""The keeper: a small process that makes sure that no job outlives the service.

It starts the parent, then waits for one of two things: the parent ends, or the service closes its end of our stdin
(it also does so by dying). Either way it kills every process below it. It imports nothing heavy and handles no data,
so there is little in it that could fail.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from server.sandbox import kernel, processes

SERVICE = 0
"""Our stdin, shared with the parent, which reads from it. The keeper only ever asks whether it is still open."""


def keep() -> int:
    processes.adopt_orphans()
    parent = os.fork()
    if parent == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        from server.worker.parent import main

        os._exit(main())
    for number in (signal.SIGTERM, signal.SIGINT):
        # The handler only has to exist: a signal then interrupts the wait, see `_wait`.
        signal.signal(number, _stop)
    _wait(parent)
    left = not processes.end_descendants(os.getpid())
    if left:
        print("some processes of the last job could not be ended", file=sys.stderr)
    return int(left)


class _StopRequested(Exception):
    pass


def _stop(number: int, frame: object) -> None:
    raise _StopRequested


def _wait(parent: int) -> None:
    waiting = select.poll()
    ended = os.pidfd_open(parent)
    waiting.register(ended, select.POLLIN)
    # No event is asked for: POLLHUP is always reported, and input is the parent's to read.
    waiting.register(SERVICE, 0)
    try:
        while not waiting.poll():
            continue
    except _StopRequested:
        return


if __name__ == "__main__":
    raise SystemExit(keep())
