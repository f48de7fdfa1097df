"""Makes the interpreter and this code readable for jobs, where they lie in a folder that is closed to others.

In tier B jobs have users of their own where the worker is root, and could not read a Python that was installed below
/root. So the zygote gets a view of the file system of its own, in which such a closed folder is empty but for the parts
that jobs need. As a side effect, the rest of that folder cannot be seen by jobs at all.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from server.sandbox import kernel


def closed_ancestor(folder: Path) -> Path | None:
    """The uppermost of `folder` and its parents that others may not enter."""
    path_down = [*reversed(folder.parents), folder]
    return next((path for path in path_down if not _is_open(path)), None)


def _is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


def open_to_others(folders: Iterable[Path], workspace: Path) -> None:
    """Makes `folders` readable for other users, for this process and its children alone. Needs the right to mount.

    Raises PermissionError, with a sentence, where mounts are forbidden, and where one of them is closed itself: a view
    of the file system leaves its mode as it is.
    """
    needed = sorted({folder.resolve() for folder in folders if closed_ancestor(folder.resolve()) is not None})
    if not needed:
        return
    if (closed := next((folder for folder in needed if not _is_open(folder)), None)) is not None:
        raise PermissionError(
            f"Jobs run as users of their own, who may not enter {closed}: make it readable with `chmod o+rx {closed}`, "
            "or start the worker as another user than root."
        )
    try:
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount(None, Path("/"), kernel.MS_REC | kernel.MS_PRIVATE)
        while (closed := next(filter(None, map(closed_ancestor, needed)), None)) is not None:
            _empty_but_for(closed, [folder for folder in needed if folder.is_relative_to(closed)], workspace)
    except OSError as failure:
        raise PermissionError(
            f"Jobs run as users of their own, who may not read {needed[0]}, and this cannot be changed by a mount "
            f"({failure}): install Python where others may read it, or start the worker as another user than root."
        ) from None


def _empty_but_for(closed: Path, kept: list[Path], workspace: Path) -> None:
    kept = [folder for folder in kept if not any(other in folder.parents for other in kept)]
    aside: dict[Path, Path] = {}
    for folder in kept:
        aside[folder] = Path(tempfile.mkdtemp(dir=workspace))
        kernel.mount(folder, aside[folder], kernel.MS_BIND | kernel.MS_REC)
    kernel.mount(Path("none"), closed, 0, kind="tmpfs", data="mode=755,size=1m")
    for folder, place in aside.items():
        folder.mkdir(parents=True, exist_ok=True)
        kernel.mount(place, folder, kernel.MS_MOVE)
        os.rmdir(place)
