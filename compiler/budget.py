"""The time that an exploration may take, handed from stage to stage.

A budget is a moment at which all has to be done. A stage takes a share of what is left, asks whether a call of known
cost still fits, and leaves out what does not. What cannot be predicted is stopped: see `Budget.stopping`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# By name, so that a snippet that patches these modules changes nothing: blocks end while its patches are in force.
from signal import ITIMER_REAL, SIGALRM, setitimer, signal
from time import perf_counter

#: The type of the error in a report that was stopped.
TIME_LIMIT = "TimeLimit"
#: Seconds after which something that caught `OutOfTime` meets it again.
_AGAIN = 1.0


class OutOfTime(BaseException):
    """The time for what is running is up. No `except Exception` of a library on the way keeps it."""


@dataclass(frozen=True)
class Budget:
    """What is left until `deadline`, in seconds on `clock`; without a deadline everything fits."""

    deadline: float = math.inf
    clock: Callable[[], float] = perf_counter

    @property
    def left(self) -> float:
        """Seconds; never negative."""
        return max(0.0, self.deadline - self.clock())

    @property
    def is_spent(self) -> bool:
        return self.left <= 0.0

    def fits(self, seconds: float) -> bool:
        """Whether something that takes so long would end in time."""
        return seconds <= self.left

    def within(self, seconds: float | None) -> Budget:
        """The same, but for at most so many seconds from now."""
        if seconds is None:
            return self
        return Budget(min(self.deadline, self.clock() + seconds), self.clock)

    def share(self, fraction: float) -> Budget:
        """That part of what is left; what is not used of it stays with the whole."""
        return self.within(fraction * self.left)

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Raise `OutOfTime` in what runs within, once the time is up: between two steps of Python, so native code is
        waited for. Only the main thread can be stopped so; in others nothing is. Blocks do not nest."""
        if self.deadline == math.inf or threading.current_thread() is not threading.main_thread():
            yield
            return

        def ring(*_: object) -> None:
            raise OutOfTime

        before = signal(SIGALRM, ring)
        setitimer(ITIMER_REAL, max(self.left, 1e-6), _AGAIN)
        try:
            yield
        finally:
            setitimer(ITIMER_REAL, 0.0)
            signal(SIGALRM, before)


@contextmanager
def unstopped() -> Iterator[None]:
    """What runs within is not stopped, as what would be left half done: the time up is met after it."""
    left, again = setitimer(ITIMER_REAL, 0.0)
    try:
        yield
    finally:
        if left:
            setitimer(ITIMER_REAL, left, again)


#: The part of a budget that samples are planned for: they are stopped when all of it is spent, and then are lost.
PLANNED = 0.8

#: Everything fits.
UNLIMITED = Budget()


def in_seconds(seconds: float) -> str:
    """A duration for a sentence: two digits are enough to decide by."""
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
