"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).

Each part of the plane has its own way (NIST's Digital Library of Mathematical Functions, 8.11, 8.12, 8.9): where x is
smaller than a the power series of P; where it is larger the continued fraction of Q, by the method of Lentz; near x = a
for large a, where both would take long, Temme's uniform expansion; and for small a and x, where Q is the small
difference of numbers near one, a power series of its own. P is 1 - Q, or Q is 1 - P, only where that loses nothing.
"""

from __future__ import annotations

from math import pi, sqrt

import torch

from compiler.functions.coefficients import LOG_GAMMA, TEMME
from compiler.functions.series import bernoulli, chebyshev, is_double, polynomial, power_series
from compiler.ir.functions import function, named, repeat
from compiler.ir.ops import ops
from compiler.ir.value import Value

#: No part of the plane needs as many terms.
MOST_TERMS = 2000.0


def _excess(a: Value, x: Value) -> Value:
    """log(x / a) - (x - a) / a, which is negative and near x = a as small as the square of its distance."""
    distance = named("distance", (x - a) / a)
    s = distance / (2.0 + distance)
    square = named("square", s * s)
    # log(1 + d) = 2 atanh(s) for s = d / (2 + d).
    odd = power_series(square, lambda k: 1 / (2 * k + 3), 0.12)
    near = 2.0 * s * square * odd - distance * s
    return ops.where(abs(distance) < 0.5, near, ops.log(x / a) - distance)


@function
def power_over_gamma(a: Value, x: Value) -> Value:
    """x^a exp(-x) / gamma(a + 1)."""
    small = ops.exp(a * ops.log(x) - x - ops.lgamma(a + 1.0))
    inverse = 1.0 / a
    stirling = inverse * polynomial(
        inverse * inverse, [float(bernoulli(2 * k) / (2 * k * (2 * k - 1))) for k in range(1, 8 if is_double(a) else 4)]
    )
    large = ops.exp(a * _excess(a, x) - stirling) / ops.sqrt(a * (2 * pi))
    return ops.where(a < 10.0, small, large)


@function
def small_upper_gamma(a: Value, x: Value) -> Value:
    """Q(a, x) for a <= 1 and x <= 1.5, where it may be small while P is not."""
    # 1 - x^a / gamma(1 + a), less the rest of the power series.
    logarithm = named("logarithm", a * (ops.log(x) - chebyshev(2.0 * a - 1.0, LOG_GAMMA)))
    limit = torch.finfo(x.dtype).eps / 4
    state = repeat(
        {"n": ops.constant(1.0, x.dtype), "factor": -x, "total": ops.constant(0.0, x.dtype)},
        lambda n, factor, total: (abs(factor) > limit * abs(total)) & (n < MOST_TERMS),
        lambda n, factor, total: {
            "total": total + factor / (a + n), "factor": -factor * x / (n + 1.0), "n": n + 1.0,
        },
        trips=16,
    )  # fmt: skip
    return -ops.expm1(logarithm) - ops.exp(logarithm) * a * state["total"]


@function
def lower_gamma_series(a: Value, x: Value) -> Value:
    """The sum of x^n / ((a + 1) ... (a + n)) over n = 0, 1, 2, ..."""
    limit = torch.finfo(x.dtype).eps / 4
    return repeat(
        {"n": ops.constant(1.0, x.dtype), "factor": ops.constant(1.0, x.dtype), "total": ops.constant(1.0, x.dtype)},
        lambda n, factor, total: (factor > limit * total) & (n < MOST_TERMS),
        lambda n, factor, total: {
            "factor": (grown := named("grown", factor * x / (a + n))), "total": total + grown, "n": n + 1.0,
        },
        trips=40,
    )["total"]  # fmt: skip


@function
def upper_gamma_fraction(a: Value, x: Value) -> Value:
    """The continued fraction 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))."""
    limit = torch.finfo(x.dtype).eps
    start = named("start", x + 1.0 - a)
    state = repeat(
        {"n": ops.constant(1.0, x.dtype), "c": ops.constant(1e30, x.dtype), "d": 1.0 / start, "value": 1.0 / start,
         "change": ops.constant(0.0, x.dtype)},
        lambda n, c, d, value, change: (abs(change - 1.0) > limit) & (n < MOST_TERMS),
        lambda n, c, d, value, change: _lentz(a, n, c, d, value, start),
        trips=40,
    )  # fmt: skip
    return state["value"]


def _lentz(a: Value, n: Value, c: Value, d: Value, value: Value, start: Value) -> dict[str, Value]:
    """One more step of the fraction (W. Lentz, 1976): `value` grows by the factor c d."""
    numerator = named("numerator", n * (a - n))
    denominator = named("denominator", start + 2.0 * n)
    new_d = named("new_d", 1.0 / (denominator + numerator * d))
    new_c = named("new_c", denominator + numerator / c)
    change = named("new_change", new_c * new_d)
    return {"c": new_c, "d": new_d, "change": change, "value": value * change, "n": n + 1.0}


def _temme(a: Value, x: Value, sign: float) -> Value:
    """P (sign -1) or Q (sign 1) near x = a, for a large a."""
    half_square = named("half_square", -_excess(a, x))
    eta = ops.sqrt(half_square * 2.0)
    eta = named("eta", ops.where(x < a, -eta, eta))
    inverse = named("inverse", 1.0 / a)
    rows = [_taylor(eta, row) for row in (TEMME if is_double(a) else TEMME[:3])]
    total = rows[-1]
    for row in reversed(rows[:-1]):
        total = total * inverse + row
    rest = ops.exp(-a * half_square) / ops.sqrt(a * (2 * pi)) * total
    leading = 0.5 * ops.erfc(eta * ops.sqrt(a) * (sign * sqrt(0.5)))
    return leading + rest if sign > 0 else leading - rest


def _taylor(eta: Value, row: tuple[float, ...]) -> Value:
    limit = torch.finfo(eta.dtype).eps / 16
    return polynomial(eta, [c for place, c in enumerate(row) if abs(c) * 0.4**place > limit * abs(row[0])])


def _is_near(a: Value, x: Value) -> Value:
    return (a > (200.0 if is_double(a) else 30.0)) & (abs(x - a) < a * 0.3)


def _with_edges(a: Value, x: Value, value: Value, at_zero: float) -> Value:
    """The value where it is defined, and its limits: `at_zero` for x = 0 or an infinite a, the other for a = 0 or an
    infinite x."""
    infinity = float("inf")
    value = ops.where((x == 0.0) | (a == infinity), at_zero, value)
    value = ops.where((a == 0.0) | (x == infinity), 1.0 - at_zero, value)
    is_defined = (a >= 0.0) & (x >= 0.0) & ~((a == 0.0) & (x == 0.0)) & ~((a == infinity) & (x == infinity))
    return ops.where(is_defined, value, float("nan"))


@function
def lower_gamma(a: Value, x: Value) -> Value:
    """P(a, x), the regularised lower incomplete gamma function."""
    is_near = named("is_near", _is_near(a, x))
    is_below = named("is_below", (x <= a) | (x <= 1.5))
    is_ordinary = (a > 0.0) & (x > 0.0) & (a < float("inf")) & (x < float("inf")) & ~is_near
    # Lanes that go another way get arguments for which the loops end at once.
    by_series = named("by_series", is_ordinary & is_below)
    by_fraction = named("by_fraction", is_ordinary & ~is_below)
    factor = named("factor", power_over_gamma(a, x))
    series = factor * lower_gamma_series(ops.where(by_series, a, 1.0), ops.where(by_series, x, 0.0))
    fraction = upper_gamma_fraction(ops.where(by_fraction, a, 1.0), ops.where(by_fraction, x, 2.0))
    value = ops.where(is_below, series, 1.0 - factor * a * fraction)
    return _with_edges(a, x, ops.where(is_near, _temme(a, x, -1.0), value), 0.0)


@function
def upper_gamma(a: Value, x: Value) -> Value:
    """Q(a, x), the regularised upper incomplete gamma function."""
    is_near = named("is_near", _is_near(a, x))
    is_small = named("is_small", (a <= 1.0) & (x <= 1.5))
    is_below = named("is_below", x <= a)
    is_ordinary = (a > 0.0) & (x > 0.0) & (a < float("inf")) & (x < float("inf")) & ~is_near
    by_difference = named("by_difference", is_ordinary & is_small)
    by_series = named("by_series", is_ordinary & ~is_small & is_below)
    by_fraction = named("by_fraction", is_ordinary & ~is_small & ~is_below)
    factor = named("factor", power_over_gamma(a, x))
    small = small_upper_gamma(ops.where(by_difference, a, 1.0), ops.where(by_difference, x, 1.0))
    series = 1.0 - factor * lower_gamma_series(ops.where(by_series, a, 1.0), ops.where(by_series, x, 0.0))
    fraction = upper_gamma_fraction(ops.where(by_fraction, a, 1.0), ops.where(by_fraction, x, 2.0))
    value = ops.where(is_small, small, ops.where(is_below, series, factor * a * fraction))
    return _with_edges(a, x, ops.where(is_near, _temme(a, x, 1.0), value), 1.0)
