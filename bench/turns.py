"""Taking turns at one GPU: several processes prepare their cases at the same time, and one at a time measures alone.

Compiling a model takes a processor core ten seconds and more, timing it two. A process holds its place among those that
prepare (a shared lock of one file) and gives it up to measure (an exclusive one), which it gets when no other process
prepares or measures. The system releases the lock of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """One process's place. Without a path the process is alone, and nothing is waited for."""

    def __init__(self, path: str | None) -> None:
        # Open for as long as the process lives: closing the file gives the place up.
        self._descriptor = os.open(path, os.O_RDWR) if path is not None else None
        self._take(fcntl.LOCK_SH)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within, no other process that takes turns prepares or measures."""
        self._take(fcntl.LOCK_UN)
        self._take(fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._take(fcntl.LOCK_UN)
            self._take(fcntl.LOCK_SH)

    def _take(self, kind: int) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, kind)
