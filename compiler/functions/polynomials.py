"""Orthogonal polynomials of a degree that only the run knows, by their recurrences (NIST's Digital Library of
Mathematical Functions, 18.9); within (-1, 1) those of Chebyshev by their definition as waves (18.5).

The degree comes as a float and is cut off to an integer; for a negative one the value is zero, as in ATen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from compiler.functions.series import is_double
from compiler.ir.functions import function, named, repeat
from compiler.ir.ops import ops
from compiler.ir.value import Value

Step = Callable[[Value, Value, Value], Value]


def _degree(n: Value) -> Value:
    """The degree as an integer; what is none is negative."""
    return named("degree", ops.where(abs(n) < 2.0**62, n, -1.0).to(torch.int64))


def _recurrence(x: Value, degree: Value, first: Value, step: Step, last: Value | None = None) -> Value:
    """The value of `degree` from those of degree 0 (one) and 1 (`first`): `step(k, value, before)` gives that of k + 1
    from those of k and k - 1. It ends where a value is no number. `last` is the degree to go to, if not `degree`."""
    end = degree if last is None else last
    state = repeat(
        {"before": ops.constant(1.0, x.dtype), "value": first, "k": ops.constant(1, torch.int64)},
        lambda before, value, k: (k < end) & (value == value),
        lambda before, value, k: {"before": value, "value": step(k.to(x.dtype), value, before), "k": k + 1},
        trips=8,
    )
    value = ops.where(degree == 0, 1.0, state["value"])
    return ops.where(degree < 0, 0.0, value)


def _sign(count: Value) -> Value:
    """(-1)^count."""
    half = count * 0.5
    return ops.where(half == ops.floor(half), ops.constant(1.0, count.dtype), -1.0)


@dataclass(frozen=True)
class Kind:
    """One of Chebyshev's polynomials. All kinds have the same recurrence, which begins with 1 and `scale` x + `offset`;
    where x is the cosine of an angle, that of degree n is `wave`((n + shift) angle) / `wave`(shift angle)."""

    ordinal: str
    scale: float
    offset: float
    wave: str
    shift: float

    def value(self, x: Value, n: Value) -> Value:
        degree = _degree(n)
        is_wave = named("is_wave", (degree > 8) & (abs(x) <= 1.0))
        last = named("last", ops.where(is_wave, 0, degree))
        twice = named("twice", x + x)
        first = (twice if self.scale == 2 else x) + self.offset if self.offset else twice if self.scale == 2 else x
        walked = _recurrence(x, degree, first, lambda k, value, before: twice * value - before, last)
        return ops.where(is_wave, self._of_angle(degree.to(x.dtype), x), walked)

    def _of_angle(self, count: Value, x: Value) -> Value:
        angle = named("angle", ops.acos(x))
        value = ops.call(self.wave, (count + self.shift) * angle if self.shift else count * angle)
        if self.shift:
            value = value / ops.call(self.wave, self.shift * angle if self.shift != 1 else angle)
        # At the ends of the interval the quotient is one, or what both rise by: at 1 that of sines, at -1 of cosines.
        rise = count * (1 / self.shift) + 1.0 if self.shift else ops.constant(1.0, x.dtype)
        at_one = rise if self.wave == "sin" else ops.constant(1.0, x.dtype)
        other = ops.constant(1.0, x.dtype) if self.wave == "sin" and self.shift != 1 else rise
        return ops.where(abs(x) == 1.0, ops.where(x > 0.0, at_one, _sign(count) * other), value)


KINDS = {
    "t": Kind("first", 1, 0, "cos", 0),
    "u": Kind("second", 2, 0, "sin", 1),
    "v": Kind("third", 2, -1, "cos", 0.5),
    "w": Kind("fourth", 2, 1, "sin", 0.5),
}


def _chebyshev(name: str, kind: Kind) -> None:
    def polynomial(x: Value, n: Value) -> Value:
        return kind.value(x, n)

    def shifted_polynomial(x: Value, n: Value) -> Value:
        return kind.value(named("shifted", x + x - 1.0), n)

    for prefix, definition, end in (("", polynomial, "."), ("shifted_", shifted_polynomial, ", of 2 x - 1.")):
        definition.__name__ = f"{prefix}chebyshev_{name}"
        definition.__doc__ = f"Chebyshev's polynomial of the {kind.ordinal} kind and degree n{end}"
        function(definition)


for _name, _kind in KINDS.items():
    _chebyshev(_name, _kind)


def _hermite(x: Value, n: Value, first: Value, scale: float) -> Value:
    """Hermite's polynomials; beyond some degree ATen gives no number, whose size would overflow."""
    degree = _degree(n)
    most = 512 if is_double(x) else 128
    last = named("last", ops.where(degree > most, 0, degree))
    value = _recurrence(x, degree, first, lambda k, value, before: first * value - k * scale * before, last)
    return ops.where(degree > most, float("nan"), value)


@function
def hermite_h(x: Value, n: Value) -> Value:
    """The physicists' Hermite polynomial of degree n."""
    return _hermite(x, n, named("twice", x + x), 2.0)


@function
def hermite_he(x: Value, n: Value) -> Value:
    """The probabilists' Hermite polynomial of degree n."""
    return _hermite(x, n, x, 1.0)


@function
def laguerre_l(x: Value, n: Value) -> Value:
    """Laguerre's polynomial of degree n."""
    first = named("first", 1.0 - x)
    degree = _degree(n)
    last = named("last", ops.where(x == 0.0, 0, degree))
    value = _recurrence(
        x, degree, first, lambda k, value, before: ((k + k + first) * value - k * before) / (k + 1.0), last
    )
    return ops.where((x == 0.0) & (degree >= 0), 1.0, value)


@function
def legendre_p(x: Value, n: Value) -> Value:
    """Legendre's polynomial of degree n."""
    degree = _degree(n)
    last = named("last", ops.where(abs(x) == 1.0, 0, degree))
    value = _recurrence(
        x, degree, x, lambda k, value, before: ((k + k + 1.0) * x * value - k * before) / (k + 1.0), last
    )
    end = ops.where(x > 0.0, 1.0, _sign(degree.to(x.dtype)))
    return ops.where((abs(x) == 1.0) & (degree >= 0), end, value)
