"""Processes that compile Triton kernels for this one.

Triton's passes leave Python's interpreter to other threads while they work, but what it does around them is written in
Python: four threads are the most that gain anything, and a model's fifty kernels take them seconds. So a graph of many
kernels has them compiled by other processes, as TorchInductor does too. They are started when such a graph comes in, as
they take a while to begin: 0.4 to 0.5 s on an H200's host, where BERT's kernels come 2 s after them. Until then threads
compile, and a graph that is done before needs none of them.

All that passes is a question and "done": the helper leaves what it made in the cache on disk, where this process then
finds it as if an earlier one had compiled it. So a helper can be slow or gone, but not wrong: where there is none, or
it fails, or the cache is not shared, nothing is found, and the kernel is compiled here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pickle import PicklingError
from typing import Any

from triton.backends.nvidia import compiler as nvidia
from triton.runtime.cache import triton_key

from compiler.accelerators import is_on
from compiler.devices import usable_cores
from compiler.runtime.triton.cache import compiles_to_launch, is_shared
from compiler.runtime.triton.compile_helper import Job
from compiler.runtime.triton.text import text_of

#: The environment variable that says how many helpers there are.
SETTING = "FUSIONSCOPE_COMPILE_HELPERS"
#: More helpers than these wait for the one interpreter that loads what they made.
MOST_HELPERS = 12
#: With fewer, threads do as well.
LEAST_HELPERS = 3
#: Nodes of a graph from which on its kernels are worth helpers: those of a function that becomes one or two kernels
#: are compiled before a helper could begin.
LEAST_NODES = 60
#: What has not answered for so long is not waited for.
LONGEST_SECONDS = 60.0
#: How often a thread that waits for its helper to begin looks whether there is still anything to do.
MOMENT_SECONDS = 0.02

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from compiler.runtime.triton.compile_helper import main; main({descriptors!r})"
)


class Helper:
    """One process at the other end of a socket, which does one thing at a time."""

    def __init__(self, end: socket.socket) -> None:
        self.connection = Connection(end.detach())
        self._in_use = threading.Lock()
        self._has_begun = False

    @contextmanager
    def asked(self, is_wanted: Callable[[], bool]) -> Iterator[bool]:
        """Whether it is there for this thread, which waits for that as long as it `is_wanted`; then it is asked for
        every kernel that the thread compiles within."""
        if not self._in_use.acquire(blocking=False):
            yield False
            return
        try:
            _in_this_thread.helper = self if self._begins(is_wanted) else None
            yield _in_this_thread.helper is not None
        finally:
            _in_this_thread.helper = None
            self._in_use.release()

    def _begins(self, is_wanted: Callable[[], bool]) -> bool:
        with suppress(OSError, EOFError):
            while not self._has_begun and is_wanted():
                self._has_begun = self.connection.poll(MOMENT_SECONDS) and bool(self.connection.recv())
        return self._has_begun

    def compile(self, job: Job) -> None:
        """Have it compile the kernel, if it still answers."""
        with suppress(OSError, EOFError):
            self.connection.send(job)
            if self.connection.poll(LONGEST_SECONDS):
                self.connection.recv()
            else:  # or its answer would be taken for that to the next question
                self.connection.close()

    def let_go(self) -> None:
        """Close this end, upon which it ends, unless another process has this end too."""
        with suppress(OSError):
            self.connection.close()


class Helpers:
    """Processes that compile. Raises OSError where none can be started."""

    def __init__(self, count: int) -> None:
        pairs = [socket.socketpair() for _ in range(count)]
        descriptors = [theirs.fileno() for _, theirs in pairs]
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(path=sys.path, descriptors=descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        except OSError:
            for ours, _ in pairs:
                ours.close()
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()
        self.all = [Helper(ours) for ours, _ in pairs]

    @property
    def has_ended(self) -> bool:
        """As they do where nobody asks them for a while."""
        return self.process.poll() is not None


_helpers: Helpers | None = None
_lock = threading.Lock()
_in_this_thread = threading.local()


def start_helpers_for(nodes: int) -> None:
    """Have helpers where a graph of so many nodes is to be compiled, and there are cores for them. Raises ValueError
    for a setting that is no number."""
    global _helpers
    if nodes < LEAST_NODES or not is_on("compile_helpers") or not (count := _wanted()):
        return
    with _lock, suppress(OSError):
        if not helpers():
            end_helpers()
            _helpers = Helpers(count)


def _wanted() -> int:
    """How many helpers to have: what $FUSIONSCOPE_COMPILE_HELPERS says, else by the cores."""
    chosen = os.environ.get(SETTING)
    if not chosen:
        count = min(MOST_HELPERS, usable_cores() - 1)
        return count if count >= LEAST_HELPERS else 0
    if not chosen.isdecimal():
        raise ValueError(f"{SETTING} is the number of processes that compile kernels, 0 for none, and not {chosen!r}.")
    return int(chosen)


def helpers() -> list[Helper]:
    """Those that there are, whether they have begun or not."""
    return [] if _helpers is None or _helpers.has_ended else _helpers.all


def end_helpers() -> None:
    """Let go of the helpers, if there are any: they end, unless another process has their sockets too."""
    global _helpers
    if _helpers is not None:
        for helper in _helpers.all:
            helper.let_go()
        _helpers = None


def let_helper_compile(function: Any, device: int) -> None:
    """Where this thread has a helper, have it asked whenever Triton is about to compile this function of a kernel's for
    the device."""
    if getattr(_in_this_thread, "helper", None) is None:
        return
    function.device_caches[device]  # where Triton gives a function its compiler
    if not isinstance(function.compile, _AskedFirst):
        function.compile = _AskedFirst(function, function.compile)


class _AskedFirst:
    """Triton's compiler of a function, before which a helper is asked."""

    def __init__(self, function: Any, compiler: Callable[..., Any]) -> None:
        self.function, self.compiler = function, compiler

    def __call__(self, source: Any, target: Any = None, options: Any = None, **others: Any) -> Any:
        helper: Helper | None = getattr(_in_this_thread, "helper", None)
        if helper is not None and is_shared():
            with suppress(AttributeError, KeyError, TypeError, PicklingError):  # another Triton than is known here
                helper.compile(self._job(source, target, options))
        return self.compiler(source, target=target, options=options, **others)

    def _job(self, source: Any, target: Any, options: Mapping[str, Any]) -> Job:
        text, file = text_of(self.function)
        return Job(
            text,
            file,
            self.function.__name__,
            source.signature,
            source.constants,
            source.attrs,
            dict(options),
            (target.backend, target.arch, target.warp_size),
            dict(os.environ),
            triton_key(),
            nvidia.get_ptxas_version(target.arch),
            compiles_to_launch(),
        )


def _in_a_copy() -> None:
    """A copy of this process would get answers that are not for it, and keep the helpers from ending; and a thread that
    held the lock is not there."""
    global _lock
    _lock = threading.Lock()
    end_helpers()


os.register_at_fork(after_in_child=_in_a_copy)
