"""Orthogonal polynomials of a degree that only the run knows, by their recurrences (NIST's Digital Library of
Mathematical Functions, 18.9); within (-1, 1) those of Chebyshev by their definition as waves (18.5).

The degree comes as a float and is cut off to an integer; for a negative one the value is zero, as in ATen.
"""

from __future__ import annotations

from collections.abc import Callable

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


def _chebyshev(x: Term, n: Term, first: Term, wave: Callable[[Term, Term], Term], waves_from: int) -> Term:
    """One of Chebyshev's polynomials: all four kinds have the same recurrence, and are a wave of the angle acos x."""
    degree = _degree(n)
    is_wave = named("is_wave", (degree > waves_from) & (abs(x) <= 1.0))
    last = named("last", where(is_wave, 0, degree))
    twice = named("twice", x + x)
    walked = _recurrence(x, degree, first, lambda k, value, before: twice * value - before, last)
    angle = named("angle", call("acos", x))
    return where(is_wave, wave(degree.to(x.dtype), angle), walked)


def _sign(count: Term) -> Term:
    """(-1)^count."""
    half = count * 0.5
    return where(half == call("floor", half), term(1.0, count.dtype), -1.0)


def _t(x: Term, n: Term) -> Term:
    def wave(count: Term, angle: Term) -> Term:
        end = where(x > 0.0, 1.0, _sign(count))
        return where(abs(x) == 1.0, end, call("cos", count * angle))

    return _chebyshev(x, n, x, wave, 6)


def _u(x: Term, n: Term) -> Term:
    def wave(count: Term, angle: Term) -> Term:
        end = where(x > 0.0, count + 1.0, _sign(count) * (count + 1.0))
        return where(abs(x) == 1.0, end, call("sin", (count + 1.0) * angle) / call("sin", angle))

    return _chebyshev(x, n, x + x, wave, 8)


def _v(x: Term, n: Term) -> Term:
    def wave(count: Term, angle: Term) -> Term:
        end = where(x > 0.0, 1.0, _sign(count) * (count + count + 1.0))
        return where(abs(x) == 1.0, end, call("cos", (count + 0.5) * angle) / call("cos", angle * 0.5))

    return _chebyshev(x, n, x + x - 1.0, wave, 8)


def _w(x: Term, n: Term) -> Term:
    def wave(count: Term, angle: Term) -> Term:
        end = where(x > 0.0, count + count + 1.0, _sign(count))
        return where(abs(x) == 1.0, end, call("sin", (count + 0.5) * angle) / call("sin", angle * 0.5))

    return _chebyshev(x, n, x + x + 1.0, wave, 8)


def _shifted(x: Term) -> Term:
    return named("shifted", x + x - 1.0)


@function
def chebyshev_t(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the first kind and degree n."""
    return _t(x, n)


@function
def chebyshev_u(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the second kind and degree n."""
    return _u(x, n)


@function
def chebyshev_v(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the third kind and degree n."""
    return _v(x, n)


@function
def chebyshev_w(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the fourth kind and degree n."""
    return _w(x, n)


@function
def shifted_chebyshev_t(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the first kind and degree n, of 2 x - 1."""
    return _t(_shifted(x), n)


@function
def shifted_chebyshev_u(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the second kind and degree n, of 2 x - 1."""
    return _u(_shifted(x), n)


@function
def shifted_chebyshev_v(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the third kind and degree n, of 2 x - 1."""
    return _v(_shifted(x), n)


@function
def shifted_chebyshev_w(x: Term, n: Term) -> Term:
    """Chebyshev's polynomial of the fourth kind and degree n, of 2 x - 1."""
    return _w(_shifted(x), n)


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
