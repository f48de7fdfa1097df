"""Sums of powers and of Chebyshev polynomials, cut off where the dtype sees no more of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb

import torch

from compiler.ir.functions import named
from compiler.ir.ops import ops
from compiler.ir.value import Value


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of `coefficients[k] * x**k`, by Horner's rule."""
    *rest, last = coefficients
    total = ops.constant(last, x.dtype)
    for coefficient in reversed(rest):
        total = named("p", total * x + coefficient)
    return total


def chebyshev(t: Value, series: Sequence[float]) -> Value:
    """The sum of `series[k] * T[k](t)` for t in [-1, 1], as a polynomial in t: for the series of `coefficients.py`,
    whose powers are no larger than theirs, that is as accurate as Clenshaw's recurrence."""
    limit = torch.finfo(t.dtype).eps / 16 * max(abs(c) for c in series)
    count = max(power for power, c in enumerate(series) if abs(c) > limit) + 1
    return polynomial(t, _powers(tuple(series[:count])))


@cache
def _powers(series: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients of the powers of t, exactly computed and then rounded."""
    total = [Fraction(0)] * len(series)
    before, current = [Fraction(1)], [Fraction(0), Fraction(1)]
    for coefficient in series:
        for power, value in enumerate(before):
            total[power] += value * Fraction(coefficient)
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
