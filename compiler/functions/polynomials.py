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
from compiler.ir.terms import Term, call, term, where

Step = Callable[[Term, Term, Term], Term]


def _degree(n: Term) -> Term:
    """The degree as an integer; what is none is negative."""
    return named("degree", where(abs(n) < 2.0**62, n, -1.0).to(torch.int64))


def _recurrence(x: Term, degree: Term, first: Term, step: Step, last: Term | None = None) -> Term:
    """The value of `degree` from those of degree 0 (one) and 1 (`first`): `step(k, value, before)` gives that of k + 1
    from those of k and k - 1. It ends where a value is no number. `last` is the degree to go to, if not `degree`."""
    end = degree if last is None else last
    state = repeat(
        {"before": term(1.0, x.dtype), "value": first, "k": term(1, torch.int64)},
        lambda before, value, k: (k < end) & (value == value),
        lambda before, value, k: {"before": value, "value": step(k.to(x.dtype), value, before), "k": k + 1},
        trips=8,
    )
    value = where(degree == 0, 1.0, state["value"])
    return where(degree < 0, 0.0, value)


def _sign(count: Term) -> Term:
    """(-1)^count."""
    half = count * 0.5
    return where(half == call("floor", half), term(1.0, count.dtype), -1.0)


@dataclass(frozen=True)
class Kind:
    """One of Chebyshev's polynomials. All kinds have the same recurrence, which begins with 1 and `scale` x + `offset`;
    where x is the cosine of an angle, that of degree n is `wave`((n + shift) angle) / `wave`(shift angle)."""

    ordinal: str
    scale: float
    offset: float
    wave: str
    shift: float

    def value(self, x: Term, n: Term) -> Term:
        degree = _degree(n)
        is_wave = named("is_wave", (degree > 8) & (abs(x) <= 1.0))
        last = named("last", where(is_wave, 0, degree))
        twice = named("twice", x + x)
        first = (twice if self.scale == 2 else x) + self.offset if self.offset else twice if self.scale == 2 else x
        walked = _recurrence(x, degree, first, lambda k, value, before: twice * value - before, last)
        return where(is_wave, self._of_angle(degree.to(x.dtype), x), walked)

    def _of_angle(self, count: Term, x: Term) -> Term:
        angle = named("angle", call("acos", x))
        value = call(self.wave, (count + self.shift) * angle if self.shift else count * angle)
        if self.shift:
            value = value / call(self.wave, self.shift * angle if self.shift != 1 else angle)
        # At the ends of the interval the quotient is one, or what both rise by: at 1 that of sines, at -1 of cosines.
        rise = count * (1 / self.shift) + 1.0 if self.shift else term(1.0, x.dtype)
        at_one = rise if self.wave == "sin" else term(1.0, x.dtype)
        other = term(1.0, x.dtype) if self.wave == "sin" and self.shift != 1 else rise
        return where(abs(x) == 1.0, where(x > 0.0, at_one, _sign(count) * other), value)


KINDS = {
    "t": Kind("first", 1, 0, "cos", 0),
    "u": Kind("second", 2, 0, "sin", 1),
    "v": Kind("third", 2, -1, "cos", 0.5),
    "w": Kind("fourth", 2, 1, "sin", 0.5),
}


def _chebyshev(name: str, kind: Kind) -> None:
    def polynomial(x: Term, n: Term) -> Term:
        return kind.value(x, n)

    def shifted_polynomial(x: Term, n: Term) -> Term:
        return kind.value(named("shifted", x + x - 1.0), n)

    for prefix, definition, end in (("", polynomial, "."), ("shifted_", shifted_polynomial, ", of 2 x - 1.")):
        definition.__name__ = f"{prefix}chebyshev_{name}"
        definition.__doc__ = f"Chebyshev's polynomial of the {kind.ordinal} kind and degree n{end}"
        function(definition)


for _name, _kind in KINDS.items():
    _chebyshev(_name, _kind)


def _hermite(x: Term, n: Term, first: Term, scale: float) -> Term:
    """Hermite's polynomials; beyond some degree ATen gives no number, whose size would overflow."""
    degree = _degree(n)
    most = 512 if is_double(x) else 128
    last = named("last", where(degree > most, 0, degree))
    value = _recurrence(x, degree, first, lambda k, value, before: first * value - k * scale * before, last)
    return where(degree > most, float("nan"), value)


@function
def hermite_h(x: Term, n: Term) -> Term:
    """The physicists' Hermite polynomial of degree n."""
    return _hermite(x, n, named("twice", x + x), 2.0)


@function
def hermite_he(x: Term, n: Term) -> Term:
    """The probabilists' Hermite polynomial of degree n."""
    return _hermite(x, n, x, 1.0)


@function
def laguerre_l(x: Term, n: Term) -> Term:
    """Laguerre's polynomial of degree n."""
    first = named("first", 1.0 - x)
    degree = _degree(n)
    last = named("last", where(x == 0.0, 0, degree))
    value = _recurrence(
        x, degree, first, lambda k, value, before: ((k + k + first) * value - k * before) / (k + 1.0), last
    )
    return where((x == 0.0) & (degree >= 0), 1.0, value)


@function
def legendre_p(x: Term, n: Term) -> Term:
    """Legendre's polynomial of degree n."""
    degree = _degree(n)
    last = named("last", where(abs(x) == 1.0, 0, degree))
    value = _recurrence(
        x, degree, x, lambda k, value, before: ((k + k + 1.0) * x * value - k * before) / (k + 1.0), last
    )
    end = where(x > 0.0, 1.0, _sign(degree.to(x.dtype)))
    return where((abs(x) == 1.0) & (degree >= 0), end, value)
