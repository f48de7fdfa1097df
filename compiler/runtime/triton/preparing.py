"""Compile kernels at the same time: in other processes, or in threads.

Other processes (see `compile_helpers`) have a kernel as soon as it is added, while this one goes on with what comes
next. Where there are none, or none has begun, nothing is compiled before it is waited for: threads would hold up the
thread that adds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

from compiler.devices import usable_cores
from compiler.runtime.triton.compile_helpers import Helper, helpers
from compiler.runtime.triton.setup import begin_setting_up

#: Threads that compile at the same time. More of them wait for Python's interpreter: on the host of an H200, with 32
#: cores, 31 kernels of small programs took one thread 4.0 s, four 1.5 s, sixteen 1.8 s.
MOST_THREADS = 4

Prepare = Callable[[], object]


class Preparation:
    """What is to be called, in no order that can be relied on, though what has most work is begun first. Whoever adds
    to it closes it at last: threads wait for more until then."""

    def __init__(self) -> None:
        self._left: list[tuple[float, int, Prepare]] = []
        self._order = count()
        self._changed = threading.Condition()
        self._is_closed = False
        self._are_helped = threading.Event()
        self._with_helpers: list[threading.Thread] = []
        self._finishing = threading.Lock()

    @property
    def is_begun(self) -> bool:
        """Whether other processes are at it, or will be before it is waited for."""
        return bool(self._with_helpers)

    def add(self, prepare: Prepare, work: float = 0.0) -> None:
        """A kernel that does not compile says so when it is launched."""
        with self._changed:
            heappush(self._left, (-work, next(self._order), prepare))
            self._changed.notify()
        for helper in helpers()[len(self._with_helpers) :][:1]:
            self._with_helpers.append(_begun(self._work_with, helper))

    def close(self) -> None:
        """Nothing is added any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """What is not begun is not wanted."""
        with self._changed:
            self._left.clear()
        self.close()

    def finish(self) -> None:
        """Close it and wait until all has been called, a few of them here until a helper has begun."""
        self.close()
        with self._finishing:
            if self._left:
                begin_setting_up().join()
            here = 0 if self._are_helped.is_set() else min(len(self._left), usable_cores(), MOST_THREADS)
            threads = [_begun(self._work, self._are_helped.is_set) for _ in range(here - 1)]
            if here:
                self._work(self._are_helped.is_set)
            for thread in (*threads, *self._with_helpers):
                thread.join()
            self._work(lambda: False)

    def _is_wanted(self) -> bool:
        return bool(self._left) or not self._is_closed

    def _next(self, waits: bool = False) -> Prepare | None:
        with self._changed:
            while waits and not self._left and not self._is_closed:
                self._changed.wait()
            return heappop(self._left)[-1] if self._left else None

    def _work(self, may_stop: Callable[[], bool]) -> None:
        while not may_stop() and (prepare := self._next()) is not None:
            _attempt(prepare)

    def _work_with(self, helper: Helper) -> None:
        with helper.asked(self._is_wanted) as is_there:
            if is_there:
                self._are_helped.set()
                begin_setting_up().join()
                while (prepare := self._next(waits=True)) is not None:
                    _attempt(prepare)


def prepare_all(prepares: Sequence[Prepare]) -> None:
    """Call each; they are begun in their order."""
    preparation = Preparation()
    for prepare in prepares:
        preparation.add(prepare)
    preparation.finish()


def _begun(work: Callable[..., object], *given: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=given, name="fusionscope-compile")
    thread.start()
    return thread


def _attempt(prepare: Prepare) -> None:
    with suppress(Exception):  # the launch does it again and raises
        prepare()
