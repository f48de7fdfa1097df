"""Simpler forms of sizes that hold in every call by its guards: eager has broadcast by them, or found no row empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import sympy
from torch.utils._sympy.functions import Max

Equation = tuple[Any, Any]

#: Of each environment: how many of its guards were read, the equations among them, and what follows from those.
_READ: WeakKeyDictionary[Any, tuple[int, list[Equation], dict[Any, Any]]] = WeakKeyDictionary()


def simpler_by_guards(environment: Any) -> Mapping[Any, Any]:
    """The formulas and symbols of a `ShapeEnv` that equations among its guards say are a number, with that number, and
    the maxima that they say are one of their terms, with that term.

    - `s0 // 5 == 1`: `s0 // 5` is 1;
    - `5 * (s0 // 5) == s0`: `s0` is 5, by the first;
    - `s1**2 == 25`: `s1**2` is 25, and `s1`, which is not negative, is 5;
    - `max(1, s2 // 8) == s2 // 8`: the maximum, as strides have it of a tensor that is not empty, is `s2 // 8`.
    """
    read, equations, simpler = _READ.get(environment, (0, [], {}))
    guards = environment.guards
    if read < len(guards):
        equations += [guard.expr.args for guard in guards[read:] if isinstance(guard.expr, sympy.Eq)]
        while any([_follows(equation, simpler) for equation in equations]):
            pass
        _READ[environment] = len(guards), equations, simpler
    return simpler


def _follows(equation: Equation, simpler: dict[Any, Any]) -> bool:
    """Note what an equation says of its sides; whether that is news."""
    known = len(simpler)
    values = [side.xreplace(simpler) for side in equation]
    for side, other, number in zip(equation, equation[::-1], values[::-1], strict=True):
        if isinstance(side, Max) and other in side.args:
            simpler.setdefault(side, other)
        if isinstance(number, sympy.Integer) and not isinstance(side, sympy.Integer):
            simpler.setdefault(side, number)
            _note_root(side, number, simpler)
    return len(simpler) > known


def _note_root(side: Any, number: sympy.Integer, simpler: dict[Any, Any]) -> None:
    if (
        isinstance(side, sympy.Pow)
        and side.base.is_Symbol
        and side.base.is_nonnegative
        and isinstance(side.exp, sympy.Integer)
        and side.exp > 0
    ):
        root, is_whole = sympy.integer_nthroot(int(number), int(side.exp))
        if is_whole:
            simpler.setdefault(side.base, sympy.Integer(root))
