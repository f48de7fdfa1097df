"""Sums of powers and of Chebyshev polynomials, cut off where the dtype sees no more of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import comb

import torch

from compiler.ir.functions import named
from compiler.ir.ops import ops
from compiler.ir.value import Value


def is_double(x: Value) -> bool:
    return x.dtype == torch.float64


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of `coefficients[k] * x**k`, by Horner's rule."""
    *rest, last = coefficients
    total = ops.constant(last, x.dtype)
    for coefficient in reversed(rest):
        total = named("p", total * x + coefficient)
    return total


def power_series(x: Value, coefficient: Callable[[int], Fraction | float], largest: float) -> Value:
    """The sum of `coefficient(k) * x**k` for |x| <= `largest`, as far as the dtype's precision goes."""
    limit = torch.finfo(x.dtype).eps / 16
    coefficients: list[float] = []
    total = 0.0
    while True:
        value = float(coefficient(len(coefficients)))
        size = abs(value) * largest ** len(coefficients)
        total += size
        if len(coefficients) > 1 and size < limit * total and value != 0:
            return polynomial(x, coefficients)
        coefficients.append(value)


def chebyshev(t: Value, series: Sequence[float]) -> Value:
    """The sum of `series[k] * T[k](t)` for t in [-1, 1]: as a polynomial in t where that is as accurate, else by
    Clenshaw's recurrence (C. Clenshaw, 1955)."""
    limit = torch.finfo(t.dtype).eps / 16 * max(abs(c) for c in series)
    count = max(place for place, c in enumerate(series) if abs(c) > limit) + 1
    kept = tuple(series[:count])
    powers = _powers(kept)
    if sum(map(abs, powers)) <= 2 * sum(map(abs, kept)):
        return polynomial(t, powers)
    twice = named("twice", t + t)
    newer, older = named("b", twice * kept[-1] + kept[-2]), ops.constant(kept[-1], t.dtype)
    for coefficient in reversed(kept[1:-2]):
        newer, older = named("b", twice * newer - older + coefficient), newer
    return t * newer - older + kept[0]


@cache
def _powers(series: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients of the powers of t, exactly computed and then rounded."""
    total = [Fraction(0)] * len(series)
    before, current = [Fraction(1)], [Fraction(0), Fraction(1)]
    for coefficient in series:
        for place, value in enumerate(before):
            total[place] += value * Fraction(coefficient)
        doubled = [Fraction(0), *(2 * value for value in current)]
        older = [*before, *([Fraction(0)] * (len(doubled) - len(before)))]
        before, current = current, [new - old for new, old in zip(doubled, older, strict=True)]
    return tuple(float(value) for value in total)


@cache
def bernoulli(n: int) -> Fraction:
    """Bernoulli's number B[n], with B[1] = -1/2."""
    if n == 0:
        return Fraction(1)
    return -sum((comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)
