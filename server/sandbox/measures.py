"""What processes and folders use, read from /proc and the file system.

Memory is counted in three parts, so that nothing is counted twice:

    private     RssAnon and page tables of each process: a cheap bound, since pages that a process still shares with
                the zygote are counted for each. `proportional` gives each sharer its part, and is expensive.
    shared      files in memory without a name: memfd, shared anonymous mappings, deleted files. They are found by the
                descriptors and the mappings of all processes, and each is counted once.
    named       files in /dev/shm; they are counted by `Watch`.

A mapped file without a descriptor is counted by the blocks that it has, where this process may ask
(/proc/<pid>/map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), else by the length of its mappings. What no
process has, such as a descriptor under way in a socket, is seen by no watch: only a memory limit on the whole
container bounds it, together with the limits on a file's size and on descriptors.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

_KIB = 1024
_BLOCK = 512
_DEEPEST = 64
_REST_FACTOR = 9
"""What is expensive is asked for again after nine times as long as it took: it uses a tenth of a processor at the
most."""

Identity = tuple[int, int]
"""A file's device and inode."""

T = TypeVar("T")


class Paced(Generic[T]):
    """An expensive figure, which is as old as its price asks for."""

    def __init__(self, measure: Callable[[], T], at_first: T) -> None:
        self._measure = measure
        self._value = at_first
        self._next = 0.0

    def __call__(self) -> T:
        before = time.monotonic()
        if before >= self._next:
            self._value = self._measure()
            after = time.monotonic()
            self._next = after + _REST_FACTOR * (after - before)
        return self._value


def family(ancestor: int) -> list[int]:
    """The processes below `ancestor`. Raises FileNotFoundError where the kernel does not list children."""
    found: list[int] = []
    frontier = [ancestor]
    while frontier:
        process = frontier.pop()
        try:
            threads = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                    children = list(map(int, file.read().split()))
            except FileNotFoundError:
                if os.path.exists(f"/proc/{process}/task/{thread}/stat"):
                    raise
                continue
            except OSError:
                continue
            found += children
            frontier += children
    return found


def private_bytes(process: int) -> int:
    """Pages of its own in memory, and the tables that map them; 0 where it has ended."""
    return _sum_of_lines(f"/proc/{process}/status", (b"RssAnon:", b"VmPTE:"))


def proportional_bytes(process: int) -> int | None:
    """As `private_bytes`, with its part alone of what it shares; None where this process may not ask."""
    try:
        return _sum_of_lines(f"/proc/{process}/smaps_rollup", (b"Pss_Anon:",), may_fail=False) + _sum_of_lines(
            f"/proc/{process}/status", (b"VmPTE:",)
        )
    except PermissionError:
        return None
    except OSError:
        return 0


def _sum_of_lines(path: str, names: tuple[bytes, ...], may_fail: bool = True) -> int:
    try:
        with open(path, "rb") as file:
            return sum(int(line.split()[1]) * _KIB for line in file if line.startswith(names))
    except OSError:
        if not may_fail:
            raise
        return 0


@dataclass
class Nameless:
    """Files without a name that processes hold, in bytes by their identity."""

    sizes: dict[Identity, int] = field(default_factory=dict)
    seen: int = 0
    """How many processes said what they hold."""
    closed: int = 0
    """How many did not, to this process: they run a program that nobody may read, or are about to begin one."""

    def of(self, devices: Iterable[int], inverted: bool = False) -> int:
        wanted = set(devices)
        return sum(size for (device, _), size in self.sizes.items() if (device in wanted) is not inverted)


def nameless(processes: Iterable[int]) -> Nameless:
    """What `processes` hold by descriptors and mappings."""
    found = Nameless()
    mapped: dict[Identity, int] = {}
    for process in processes:
        _add_descriptors(process, found)
        _add_mappings(process, found.sizes, mapped)
    for identity, size in mapped.items():
        found.sizes.setdefault(identity, size)
    return found


def _add_descriptors(process: int, found: Nameless) -> None:
    folder = f"/proc/{process}/fd"
    try:
        names = os.listdir(folder)
    except OSError as refusal:
        found.closed += isinstance(refusal, PermissionError) and not _has_ended(process)
        return
    found.seen += 1
    for name in names:
        try:
            status = os.stat(f"{folder}/{name}")
        except OSError:
            continue
        if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
            found.sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK


def _has_ended(process: int) -> bool:
    """Whether a process holds nothing any more, and only waits for its parent to ask how it ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return True
    # The name before the state is in parentheses, and may have some of its own.
    return text.rpartition(b") ")[2][:1] in (b"Z", b"X")


def _add_mappings(process: int, sizes: dict[Identity, int], mapped: dict[Identity, int]) -> None:
    try:
        lines = Path(f"/proc/{process}/maps").read_bytes().splitlines()
    except OSError:
        return
    own: dict[Identity, int] = {}
    for line in lines:
        if not line.endswith(b" (deleted)"):
            continue
        place, _, _, device, inode = line.split(None, 5)[:5]
        major, _, minor = device.partition(b":")
        identity = os.makedev(int(major, 16), int(minor, 16)), int(inode)
        if identity in sizes:
            continue
        try:
            sizes[identity] = os.stat(f"/proc/{process}/map_files/{place.decode()}").st_blocks * _BLOCK
        except OSError:
            start, _, end = place.partition(b"-")
            own[identity] = own.get(identity, 0) + int(end, 16) - int(start, 16)
    for identity, size in own.items():
        mapped[identity] = max(mapped.get(identity, 0), size)


@dataclass(frozen=True)
class Held:
    """What a folder holds. A folder that is deeper than any honest one counts as holding more than any limit."""

    bytes: int
    files: int


_TOO_DEEP = Held(1 << 62, 1 << 62)


def held_by(folder: Path, user: int | None = None) -> Held:
    """What lies in `folder`, on the first level what `user` owns alone. Follows no link, counts hard links once."""
    seen: set[Identity] = set()
    total = 0
    stack = [(str(folder), 0)]
    while stack:
        name, depth = stack.pop()
        if depth > _DEEPEST:
            return _TOO_DEEP
        for entry in _entries(name):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if user is not None and depth == 0 and status.st_uid != user:
                continue
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * _BLOCK
            if stat.S_ISDIR(status.st_mode):
                stack.append((entry.path, depth + 1))
    return Held(total, len(seen))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What a folder lists; the right to list it is taken where it is ours but was given up."""
    for is_last in (False, True):
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except PermissionError:
            if is_last or not _open_up(folder):
                return []
        except OSError:
            return []
    return []


def _open_up(folder: str) -> bool:
    try:
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
    except OSError:
        return False
    finally:
        os.close(place)
    return True
