"""What somebody else's code would do to this process, found out in a copy of it.

A fork is cheap where there is no GPU. OpenMP's threads do not live on in a copy, so that it has one; and what it
compiles, and how long that takes, tells nothing of the process itself, in which all is done again to be timed.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep

import torch

from compiler.budget import in_seconds

#: Seconds between two looks at the copy.
_PAUSE = 0.02


def ends_a_process(action: Callable[[], object], seconds: float) -> str | None:
    """What `action` does to a process, in the words that follow its name, if it ends it or runs for longer than that;
    None where it returns or raises. To be called where no GPU is in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which a copy does not have
        child = os.fork()
    if child == 0:
        _try(action)
    ends = monotonic() + seconds
    try:
        while monotonic() < ends:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                child = 0
                return _told(status)
            sleep(_PAUSE)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"did not return within {in_seconds(seconds)}, in a copy of the process"


def _try(action: Callable[[], object]) -> None:
    """In the copy, which ends here whatever happens."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        faulthandler.disable()
        torch.set_num_threads(1)
        with suppress(Exception):
            action()
    finally:
        os._exit(0)


def _told(status: int) -> str | None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"ends the process: {signal.strsignal(number) or f'signal {number}'}"
    code = os.WEXITSTATUS(status)
    return f"ends the process, with exit code {code}" if code else None
