"""The scheduler's choices: two legal ways to run the same nodes, and the predicted time of each.

`observed_choices` hands every one of them to whoever wants to measure both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from compiler.observers import Observers
from compiler.schedule.group import Group


@dataclass(frozen=True)
class Choice:
    """The kernels `apart` do what the kernels `together` do. Times are predictions in microseconds.

    `kind` is a kind of fusion, such as "vertical" or "recompute"; `is_taken` says whether it runs them together."""

    kind: str
    apart: tuple[Group, ...]
    together: tuple[Group, ...]
    apart_us: float
    together_us: float
    is_taken: bool


_observers: Observers[Choice] = Observers()


def observed_choices(observe: Callable[[Choice], object]) -> AbstractContextManager[None]:
    """Within, `observe` gets each choice that a scheduler weighs, in any thread; the same one may come twice."""
    return _observers.with_one_more(observe)


def are_observed() -> bool:
    """Whether anybody wants each choice."""
    return bool(_observers)


def weighed(choice: Choice) -> None:
    """Tell those who observe of a choice."""
    _observers.tell(choice)
