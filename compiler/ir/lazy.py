"""A value that an object computes when it is first asked for, and keeps.

As `functools.cached_property`, which in Python 3.11 takes a lock each time that it computes one: here that is most of
its cost, and two threads that compute the same value of an immutable object do no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Kept = TypeVar("Kept")


class lazy(Generic[Kept]):
    """Decorates a method without arguments. The object must have a `__dict__`."""

    def __init__(self, compute: Callable[[Any], Kept]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Kept]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Kept: ...

    def __get__(self, instance: object | None, owner: type) -> lazy[Kept] | Kept:
        if instance is None:
            return self
        # The next look-up finds the value in the object itself, without a call.
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
