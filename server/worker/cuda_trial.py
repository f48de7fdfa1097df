"""Whether modules may be imported in a process that forks others for CUDA: found by trying, not by a list of releases.

A process that has started CUDA cannot pass it on, and with some releases the import of TorchInductor starts it. So a
child of the zygote imports the modules, and forks a child of its own that starts CUDA. Where that works, it works for
jobs too.
"""

from __future__ import annotations

import importlib
import os
import signal
import traceback
from collections.abc import Callable, Iterable

from server.sandbox import kernel, processes

_MOST_SECONDS = 120
"""How long the trial may take. It holds up nobody but spares."""


def start_cuda() -> None:
    """Raises whatever torch raises where CUDA cannot be started."""
    import torch

    torch.ones(1, device="cuda").sum().item()


def begin_trial(modules: Iterable[str], start: Callable[[], None] = start_cuda) -> tuple[int, int]:
    """Forks the trial. Gives its process id and a pidfd of it, which can be read when it is over."""
    parent = os.getpid()
    trial = os.fork()
    if trial == 0:
        code = 1
        try:
            processes.die_with_parent(parent, signal.SIGKILL)
            signal.alarm(_MOST_SECONDS)
            code = _try(modules, start)
        except Exception:  # noqa: BLE001 - it is no failure of the zygote's: spares import the modules then
            traceback.print_exc()
        finally:
            os._exit(code)
    return trial, os.pidfd_open(trial)


def has_passed(trial: int) -> bool:
    """Of a trial that is over. Called once."""
    return os.waitpid(trial, 0)[1] == 0


def _try(modules: Iterable[str], start: Callable[[], None]) -> int:
    for name in modules:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        return 1
    user = os.fork()
    if user == 0:
        code = 1
        try:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # CUDA writes its threads' names below /proc/self
            start()
            code = 0
        except Exception:  # noqa: BLE001 - that it cannot be started is the answer
            pass
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(user, 0)[1])
