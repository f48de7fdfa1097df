"""Temporary folders of programs that may be killed at any moment.

Each is locked for as long as its program lives. So whoever makes the next one can tell those that were left behind,
in a container too, where a process has the number of one before it, or is not seen by another one.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from server.sandbox.leftovers import remove_tree


class OwnFolder:
    """A new folder whose name begins with `prefix`, for this program alone. Those of dead programs of this user are
    removed before it is made. Within `with` it is there; `remove` does without."""

    def __init__(self, prefix: str) -> None:
        within = Path(tempfile.gettempdir())
        _remove_leftovers(within, prefix)
        # It gets its name once it is locked: nobody takes it for one that was left.
        made = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=within))
        self._lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = made.rename(within / made.name[1:])

    @property
    def is_whole(self) -> bool:
        """Whether it is still there under its name. Another one may be, of whoever may write beside it."""
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self._lock))
        except OSError:
            return False

    def restore(self) -> None:
        """Makes it anew where somebody deleted it. Raises `OSError`, also where its place is taken."""
        if self.is_whole:
            return
        self.path.mkdir(mode=0o700)
        lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.close(self._lock)
        self._lock = lock

    def remove(self) -> None:
        """Deletes the folder and all in it. Does nothing where that is done."""
        if self._lock >= 0:
            if self.is_whole:
                remove_tree(self.path)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def _remove_leftovers(within: Path, prefix: str) -> None:
    for folder in within.glob(f"{prefix}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
        except BlockingIOError:
            continue  # its program lives
        finally:
            os.close(lock)
