"""A user for each job, where the worker is root: what the job may touch is then also the kernel's oldest rule."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from server.sandbox.leftovers import remove_tree

USERS = 256
"""How many users from the first on a sandbox may hand out."""

_SHARED_MEMORY = Path("/dev/shm")


def free_user(first: int, taken: Collection[int]) -> int:
    """The first user that neither a job of ours (`taken`) nor any process has. Raises RuntimeError."""
    busy = users_of_processes() | set(taken)
    free = next((user for user in range(first, first + USERS) if user not in busy), None)
    if free is None:
        raise RuntimeError(f"All users from {first} to {first + USERS - 1} have processes.")
    return free


def users_of_processes() -> set[int]:
    """Real, effective, saved and file system users of all processes."""
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/status", "rb") as file:
                    line = next(line for line in file if line.startswith(b"Uid:"))
            except (OSError, StopIteration):
                continue
            found.update(map(int, line.split()[1:]))
    return found


def remove_shared_memory_of(user: int) -> None:
    """Deletes what a job's user has left in /dev/shm."""
    for entry in os.scandir(_SHARED_MEMORY):
        try:
            if entry.stat(follow_symlinks=False).st_uid != user:
                continue
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(entry.path))
            else:
                os.unlink(entry.path)
        except FileNotFoundError:
            continue
