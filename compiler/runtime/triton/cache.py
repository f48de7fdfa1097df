"""Triton's compiled kernels on disk, through the interface that Triton has for caches of others.

Triton's own cache grows without bound and believes whatever it finds. Ours keeps what our kernels are compiled to, a
folder each, in which every file counts only while it is as it was written, and removes those that were not used for
longest (see `disk_cache`). A kernel of the user's own, or of TorchInductor, stays in Triton's. Where the user has named
a cache ($TRITON_CACHE_MANAGER), that is used.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from triton import knobs
from triton.runtime.cache import FileCacheManager

from compiler.runtime.disk_cache import (
    Entry,
    cache_directory,
    is_temporary,
    is_whole,
    make_room_below_limit,
    note_written,
    temporary_directory,
    touch,
    write_whole,
)
from compiler.runtime.triton.stages import assembler_started_early, ending_with_text, ends_with_text, with_our_stages

Made = TypeVar("Made")

#: Before the name of a kernel's description: the file with the names of all its files.
GROUP = "__group__"

#: The file with a kernel's first form, which Triton also keeps where it keeps nothing else for readers.
SOURCE = ".source"

_in_this_thread = threading.local()


class KernelCache(FileCacheManager):  # type: ignore[misc]
    """The files of one kernel, in the folder of its key."""

    def __new__(cls, key: str, override: bool = False, dump: bool = False) -> Any:
        """Triton also asks for a manager of folders that the user looks into; those are as Triton has them."""
        if override or dump:
            return FileCacheManager(key, override=override, dump=dump)
        return super().__new__(cls)

    def __init__(self, key: str) -> None:
        # Triton's key does not tell whether there is more than what a launch needs.
        form = "-launched" if knobs.compilation.store_binary_only else "-text" if ends_with_text() else ""
        self.key = f"{key}{form}"
        self.cache_dir = str(cache_directory("triton") / self.key)

    def has_file(self, filename: str) -> bool:
        return is_whole(Path(self._make_path(filename)))

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of a kernel's files by their names; None where any of them is not as it was written."""
        names = Path(self._make_path(f"{GROUP}{filename}"))
        if getattr(_in_this_thread, "compiles_anew", False) or not is_whole(names):
            return None
        found = {name: self._make_path(name) for name in names.read_text().splitlines()}
        if not all(is_whole(Path(path)) for path in found.values()):
            return None
        touch(names)
        return found

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        kept = [name for name, path in group.items() if path != os.devnull]
        return self.put("\n".join(kept), f"{GROUP}{filename}", binary=False)

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        if knobs.compilation.store_binary_only and filename.endswith(SOURCE):
            return os.devnull
        content = data if isinstance(data, bytes) else str(data).encode()
        path = Path(self._make_path(filename))
        try:
            write_whole(path, content)
            if note_written(path.parent.parent, len(content)):
                _make_room(path.parent)
        except OSError:  # the disk is full, or is for reading only by now
            self.cache_dir = str(temporary_directory("triton") / self.key)
            path = Path(self._make_path(filename))
            write_whole(path, content)
        return str(path)


def _make_room(newest: Path) -> None:
    entries = [Entry.of(path) for path in newest.parent.iterdir() if path.is_dir()]
    make_room_below_limit(entries, keep=newest)


#: What only a reader of a kernel wants: the text of every step, and from which line of the source each instruction is.
#: Names of Triton's settings that leave it out, and of the variables by which a user decides otherwise.
_FOR_READERS = {"store_binary_only": "TRITON_STORE_BINARY_ONLY", "disable_line_info": "TRITON_DISABLE_LINE_INFO"}

#: Threads that compile within `_in_force`: all of them what is to be launched, or none.
_users = 0
_users_launch = False
_users_changed = threading.Condition()


@contextmanager
def _in_force(is_launched: bool) -> Iterator[None]:
    """Within, in any thread, Triton asks our cache. Its settings are the whole process's: the first thread that
    compiles makes them, the last one takes them back, and one that wants others waits for that."""
    global _users, _users_launch
    with _users_changed:
        _users_changed.wait_for(lambda: _users == 0 or _users_launch == is_launched)
        _users, _users_launch = _users + 1, is_launched
        if _users == 1:
            _settings.enter_context(_settings_for(is_launched))
    try:
        yield
    finally:
        with _users_changed:
            _users -= 1
            if _users == 0:
                _settings.close()
                _users_changed.notify_all()


_settings = ExitStack()


@contextmanager
def _settings_for(is_launched: bool) -> Iterator[None]:
    cache, compilation, runtime = vars(knobs.cache), vars(knobs.compilation), vars(knobs.runtime)
    before = dict(cache), dict(compilation)
    if knobs.cache.manager_class is None:  # else it is the user's own choice
        # Straight into the objects: Triton would also set the variables, which other processes inherit.
        cache["manager_class"] = KernelCache
        if is_launched:
            compilation.update({name: True for name, variable in _FOR_READERS.items() if variable not in os.environ})
    if knobs.runtime.add_stages_inspection_hook is None:
        runtime["add_stages_inspection_hook"] = with_our_stages
    try:
        yield
    finally:
        if runtime.get("add_stages_inspection_hook") is with_our_stages:
            del runtime["add_stages_inspection_hook"]
        for settings, known in zip((cache, compilation), before, strict=True):
            settings.clear()
            settings.update(known)


def without_binary() -> AbstractContextManager[None]:
    """Within, what Triton compiles in this thread ends with the text for the assembler: where it is kept by us, under
    another name than a kernel with a binary."""
    return ending_with_text() if knobs.cache.manager_class in (None, KernelCache) else nullcontext()


def is_shared() -> bool:
    """Whether another process with the same environment leaves a kernel, and has it compiled, as this one does now."""
    return (
        knobs.cache.manager_class is KernelCache
        and vars(knobs.runtime).get("add_stages_inspection_hook") is with_our_stages
        and not is_temporary(cache_directory("triton"))
    )


def compiles_to_launch() -> bool:
    """Whether threads that compile now compile what is launched and nothing else."""
    return _users_launch


def through_cache(attempt: Callable[[], Made], is_launched: bool = False) -> Made:
    """`attempt()`, which compiles with Triton and may find on disk what it compiles to. Where that fails, once more
    without what is on disk, and in Triton's own way: a file may be gone between the look at it and its reading, or not
    be what can be loaded.

    What `is_launched` and nothing else is compiled without what only a reader wants: a tenth of the time."""
    with _in_force(is_launched):
        try:
            with assembler_started_early():
                return attempt()
        except Exception:  # noqa: BLE001 - a fault of the kernel's own is raised by the second try
            _in_this_thread.compiles_anew = True
            try:
                return attempt()
            finally:
                _in_this_thread.compiles_anew = False
