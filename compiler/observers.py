"""Whoever wants to see what passes a certain place of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Seen = TypeVar("Seen")


class Observers(Generic[Seen]):
    """Those of one place, in the whole process: AOTAutograd compiles a backward graph in the thread that runs it."""

    def __init__(self) -> None:
        self._observers: list[Callable[[Seen], object]] = []

    @contextmanager
    def with_one_more(self, observe: Callable[[Seen], object]) -> Iterator[None]:
        """Within, `observe` gets all that passes, in any thread."""
        self._observers.append(observe)
        try:
            yield
        finally:
            self._observers.remove(observe)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._observers)

    def tell(self, seen: Seen) -> None:
        for observe in self._observers:
            observe(seen)
