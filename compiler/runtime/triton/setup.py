"""Set up Triton in a process ahead of its first kernel.

That is the part of its driver that is written in C, which it has a compiler make where its cache has none; the hash of
its own library, some 400 MB, for the names of its cache; and the version of the assembler. On the host of an H200 they
take 0.3 to 0.5 s, 0.4 s and 0.02 s. They wait for another program or leave Python's interpreter to others.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

_lock = threading.Lock()
_thread: threading.Thread | None = None


def begin_setting_up() -> threading.Thread:
    """The thread that does it, or has done it; the first call in a process starts it."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_set_up, name="fusionscope-triton-setup", daemon=True)
            _thread.start()
        return _thread


def hash_of_triton() -> None:
    """Have Triton compute it, which keeps it; nothing where there is no Triton."""
    with suppress(Exception):
        from triton.runtime.cache import triton_key

        triton_key()


def _set_up() -> None:
    """What goes wrong here does so again, and is told, when a kernel is compiled."""
    hash_of_triton()
    with suppress(Exception):
        from triton.backends.nvidia.compiler import get_ptxas_version
        from triton.runtime import driver

        active: Any = driver.active
        get_ptxas_version(active.get_current_target().arch)


def _in_a_copy() -> None:
    """The thread is not there in a copy of this process, nor whoever holds the lock."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None


os.register_at_fork(after_in_child=_in_a_copy)
