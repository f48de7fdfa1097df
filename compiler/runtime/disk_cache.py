"""What compiled kernels leave on disk: in which folder, whole or damaged, and how much of it may stay.

Any number of processes share a folder without a lock. A file is written beside its place and moved there, with its
digest in a second file, and counts only where both agree: one that is cut short, changed, half removed or overwritten
by another process's of the same name is none, and its kernel is compiled again. Digests find damage, not malice: that
is kept out by who may write to the folder.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
#: What each kind of kernel may keep unless $FUSIONSCOPE_CACHE_MIB says otherwise, in units of 2^20 bytes.
DEFAULT_CACHE_MIB = 1024
#: The unit in which most file systems hand out their space.
BLOCK = 4096
#: What is free once room was made, as a share of the limit: the next search for what to remove is so much later.
FREE_SHARE = 16
#: A file of one byte for each block that was written since room was made, by any process.
LEDGER = "written"
#: How the names of temporary folders begin.
_TEMPORARY = "fusionscope-cache-"
#: Whatever is still being written after as many seconds was left behind by a process that ended.
ABANDONED_SECONDS = 3600.0


def cache_directory(kind: str) -> Path:
    """Where kernels of a kind ("cpp", "triton") are kept: in $FUSIONSCOPE_CACHE_DIR, else in a directory of the user's.

    Whoever can write there decides what this process runs, so a directory that others can write to is not used."""
    chosen = os.environ.get("FUSIONSCOPE_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fusionscope"
    directory = base / kind
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(directory, os.W_OK) and _is_ours_alone(directory):
            return directory
    except OSError as failure:
        if chosen:
            raise OSError(
                f"FUSIONSCOPE_CACHE_DIR names {chosen!r}, which cannot be made: {failure.strerror}."
            ) from None
    return temporary_directory(kind)


def _is_ours_alone(directory: Path) -> bool:
    status = directory.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def temporary_directory(kind: str) -> Path:
    """For a user without a home that can be written, or whose disk is full: it goes when this process ends."""
    directory = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{kind}-"))
    atexit.register(_remove_at_exit, directory, os.getpid())
    return directory


def _remove_at_exit(directory: Path, owner: int) -> None:
    """A process that was forked from the owner ends earlier, and leaves the folder to it."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def is_temporary(directory: Path) -> bool:
    """Whether what `cache_directory` gave is of this process alone."""
    return directory.name.startswith(_TEMPORARY)


def limit_bytes() -> int:
    """The most that kernels of one kind may take on disk."""
    chosen = os.environ.get("FUSIONSCOPE_CACHE_MIB") or str(DEFAULT_CACHE_MIB)
    if not chosen.isdecimal():
        raise ValueError(f"FUSIONSCOPE_CACHE_MIB is a whole number of units of 2^20 bytes, and not {chosen!r}.")
    return int(chosen) * MIB


# Whole files --------------------------------------------------------------------------------------------------------


def digest_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def write_whole(path: Path, content: bytes) -> None:
    """Put a file and its digest in their places. Another process that makes room may take the folder away between two
    steps, which are then done again; raises OSError for what the file system refuses otherwise."""
    _replace(path, content)
    _replace(digest_file(path), hashlib.sha256(content).hexdigest().encode())


def _replace(path: Path, content: bytes, tries: int = 10) -> None:
    for attempt in range(1, tries + 1):
        try:
            _replace_in_folder(path, content)
            return
        except (FileNotFoundError, FileExistsError):  # the second where the folder goes while it is made
            if attempt == tries:
                raise


def _replace_in_folder(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, beside = tempfile.mkstemp(prefix="tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def is_whole(path: Path) -> bool:
    """Whether the file is there as it was written: loading a damaged library could end the process."""
    try:
        return digest_file(path).read_text() == hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, UnicodeDecodeError):
        return False


def touch(path: Path) -> None:
    """Note that it was used; another process may have removed it since."""
    with suppress(OSError):
        os.utime(path)


# Room ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Entry:
    """Files and folders that are removed together. `used` is when the newest of them changed, in seconds; `bytes` what
    they take on disk."""

    used: float
    bytes: int
    paths: tuple[Path, ...]

    @staticmethod
    def of(*paths: Path) -> Entry:
        """What of them is there now."""
        used, total = 0.0, 0
        for path in paths:
            with suppress(OSError):
                for file in _files_of(path):
                    with suppress(OSError):
                        status = file.stat()
                        used, total = max(used, status.st_mtime), total + -(-status.st_size // BLOCK) * BLOCK
        return Entry(used, total, paths)


def _files_of(path: Path) -> Iterable[Path]:
    return (path, *path.iterdir()) if path.is_dir() else (path,)


def note_written(root: Path, content: int) -> bool:
    """Count a file of so many bytes that was written below `root`, and its digest. Says whether all that was written
    since the last time may have gone beyond the limit: to look at every file each time would take longer than to
    compile."""
    ledger = root / LEDGER
    with ledger.open("ab") as file:
        file.write(bytes(-(-content // BLOCK) + 1))
        blocks = file.tell()
    if blocks * BLOCK * FREE_SHARE < limit_bytes():
        return False
    ledger.unlink(missing_ok=True)
    return True


def make_room_below_limit(entries: Iterable[Entry], keep: Path) -> None:
    """`make_room` once `note_written` has said that it is time."""
    limit = limit_bytes()
    make_room(entries, limit - limit // FREE_SHARE, keep=(keep,))


def make_room(entries: Iterable[Entry], limit: int, keep: Collection[Path]) -> None:
    """Remove entries, those first that were not used for longest, until all of them take no more than `limit` bytes.
    Those with a path in `keep` stay. A process that has loaded a kernel keeps what it needs of it."""
    ordered = sorted(entries)
    total = sum(entry.bytes for entry in ordered)
    for entry in ordered:
        if total <= limit:
            return
        if not any(path in keep for path in entry.paths):
            remove(entry)
            total -= entry.bytes


def remove(entry: Entry) -> None:
    """Another process may do so at the same time."""
    for path in entry.paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def is_abandoned(path: Path) -> bool:
    """Whether a temporary file or folder was left behind by a process that ended in the middle."""
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    return False
