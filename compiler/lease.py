"""The right to time on a device that other processes time on too.

Whoever explores may be given a lease: a function whose context manager waits until nobody else times there. It is taken
around what is timed and nothing else. Waiting is nobody's work: a clock that stands still meanwhile is what budgets and
durations are read from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter

#: Gives a context manager that waits when it is entered; within, nobody else times.
Lease = Callable[[], AbstractContextManager[None]]


class TimingTurns:
    """The turns of one exploration. Without a lease there is nothing to wait for."""

    def __init__(self, lease: Lease | None = None) -> None:
        self._lease = lease
        self._waited = 0.0
        self._has_turn = False

    def clock(self) -> float:
        """Seconds of `time.perf_counter`, less those that were spent waiting for a turn."""
        return perf_counter() - self._waited

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else times within. Turns nest: an inner one is part of the outer."""
        if self._lease is None or self._has_turn:
            yield
            return
        began = perf_counter()
        with self._lease():
            self._waited += perf_counter() - began
            self._has_turn = True
            try:
                yield
            finally:
                self._has_turn = False
