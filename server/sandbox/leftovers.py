"""What jobs leave in the file system, where it does not vanish with their namespace."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

JOB_PREFIX = "job-"


def remove_job_folders(folder: Path) -> bool:
    """Deletes the folders of jobs that lie in `folder`. True when nothing of them is left."""
    found = [path for path in folder.glob(f"{JOB_PREFIX}*") if path.is_dir() and not path.is_symlink()]
    return all([remove_tree(path) for path in found])


def remove_tree(folder: Path) -> bool:
    """Deletes `folder` and all in it, whatever its modes and however deep; follows no link. True when nothing is left.

    A tree may be deeper than the longest path and than this process has descriptors. So a folder that is met is moved
    up into `folder` first, and no name is ever resolved but from the descriptor of the folder that it stands in.
    """
    try:
        outside = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return not os.path.lexists(folder)
    try:
        top = _enter(outside, folder.name)
        if top is not None:
            _empty(top)
            os.close(top)
        _attempt_rmdir(folder.name, outside)
    finally:
        os.close(outside)
    return not os.path.lexists(folder)


def _empty(top: int) -> None:
    prefix, moved = secrets.token_hex(8), 0
    pending = _take_files(top)
    while pending:
        name = pending.pop()
        here = _enter(top, name)
        if here is None:
            continue
        for inner in _take_files(here):
            moved += 1
            fresh = f"{prefix}-{moved}"
            try:
                os.rename(inner, fresh, src_dir_fd=here, dst_dir_fd=top)
            except OSError:
                continue
            pending.append(fresh)
        os.close(here)
        _attempt_rmdir(name, top)


def _take_files(folder: int) -> list[str]:
    """Deletes the files of `folder`; the folders in it, which now may be entered and moved."""
    found = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            inner = _enter(folder, name)
            if inner is not None:
                os.close(inner)
                found.append(name)
    return found


def _enter(parent: int, name: str) -> int | None:
    """Opens a folder with the right to list and change it, which is taken where it is ours but was given up."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        place = os.open(name, flags | os.O_PATH, dir_fd=parent)
    except OSError:
        return None
    try:
        if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
        return os.open(name, flags | os.O_RDONLY, dir_fd=parent)
    except OSError:
        return None
    finally:
        os.close(place)


def _attempt_rmdir(name: str, parent: int) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return
