"""The logarithmic derivatives of the gamma function, and Hurwitz's zeta function.

Both by the Euler-Maclaurin formula (NIST's Digital Library of Mathematical Functions, 5.11.2 and 25.11.28): the terms
of a sum are added up to where its asymptotic series, whose coefficients are Bernoulli's numbers, is exact.
"""

from __future__ import annotations

from math import factorial, pi

from compiler.functions.series import bernoulli, is_double, polynomial
from compiler.ir.functions import function, named, repeat
from compiler.ir.ops import ops
from compiler.ir.value import Value


@function
def psi(x: Value) -> Value:
    """The digamma function, the derivative of log gamma(x)."""
    terms, start = (8, 10) if is_double(x) else (4, 6)
    # psi(x) = psi(1 - x) - pi / tan(pi x) leads to positive numbers.
    size = named("size", ops.where(x < 0.5, 1.0 - x, x))
    # psi(y) = psi(y + n) - sum of 1 / (y + k), whose first and last terms go together: their denominators are
    # y (y + n - 1) + k (n - 1 - k).
    product = named("product", size * (size + (start - 1.0)))
    pairs = 1.0 / product
    for k in range(1, start // 2):
        pairs = named("pairs", pairs + 1.0 / (product + float(k * (start - 1 - k))))
    is_small = size < float(start)
    correction = ops.where(is_small, (2.0 * size + (start - 1.0)) * pairs, 0.0)
    large = named("large", ops.where(is_small, size + float(start), size))
    square = named("square", 1.0 / (large * large))
    tail = square * polynomial(square, [float(bernoulli(2 * k) / (2 * k)) for k in range(1, terms + 1)])
    positive = named("positive", ops.log(large) - 0.5 / large - tail - correction)
    # The tangent of pi x from the distance to the nearest integer, which is exact.
    near = named("near", x - ops.round(x))
    reflected = positive - pi / ops.tan(near * pi)
    value = ops.where(x < 0.5, reflected, positive)
    # At zero each side has its own infinity; at the other poles, and at minus infinity, there is no value. The sign
    # is turned by a product, since a language may compute -x as 0 - x, which has no sign at zero.
    is_pole = (x < 0.0) & (x == ops.floor(x))
    return ops.where(
        x == 0.0, ops.copysign(ops.constant(float("inf"), x.dtype), x * -1.0), ops.where(is_pole, float("nan"), value)
    )


@function
def positive_zeta(s: Value, q: Value) -> Value:
    """The sum of (q + k)^-s over k = 0, 1, 2, ... for s > 1 and q > 0."""
    terms, start = (12, 9.0) if is_double(s) else (6, 6.0)
    # The asymptotic series wants a base that is large beside s, or terms that are small beside the first.
    is_steep = named("is_steep", s > 8.0)
    state = repeat(
        {"k": ops.constant(0.0, q.dtype), "base": q, "total": ops.constant(0.0, q.dtype)},
        lambda k, base, total: (k < start) & ((base < start) | is_steep),
        lambda k, base, total: {"k": k + 1.0, "total": total + ops.pow(base, -s), "base": base + 1.0},
        trips=int(start),
    )
    base = state["base"]
    power = named("power", ops.pow(base, -s))
    total = state["total"] + power * base / (s - 1.0) + power * 0.5
    inverse = named("inverse", 1.0 / (base * base))
    rising = named("rising", s * power / base)
    for k in range(1, terms + 1):
        total = named("total", total + rising * float(bernoulli(2 * k) / factorial(2 * k)))
        if k < terms:
            rising = named("rising", rising * (s + (2.0 * k - 1.0)) * (s + 2.0 * k) * inverse)
    return total


@function
def hurwitz_zeta(s: Value, q: Value) -> Value:
    """The sum of (q + k)^-s over k = 0, 1, 2, ..."""
    # For q < 0 the sum over all integers, less the part that does not belong to it:
    # zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)) with f = q - floor(q).
    fraction = named("fraction", q - ops.floor(q))
    half = s * 0.5
    sign = named("sign", ops.where(half == ops.floor(half), ops.constant(1.0, s.dtype), -1.0))
    is_negative = q < 0.0
    state = repeat(
        {
            "count": ops.where(is_negative, ops.constant(3.0, q.dtype), 1.0),
            "argument": ops.where(is_negative, fraction, q),
            "weight": ops.constant(1.0, q.dtype),
            "total": ops.constant(0.0, q.dtype),
        },
        lambda count, argument, weight, total: count > 0.0,
        lambda count, argument, weight, total: {
            "total": total + weight * positive_zeta(s, argument),
            "weight": ops.where(count == 3.0, sign, -sign),
            "argument": ops.where(count == 3.0, 1.0 - fraction, 1.0 - q),
            "count": count - 1.0,
        },
        trips=1,
    )
    value = ops.where(s == ops.floor(s), state["total"], ops.where(is_negative, float("nan"), state["total"]))
    value = ops.where((q <= 0.0) & (q == ops.floor(q)), float("inf"), value)
    value = ops.where(q == float("inf"), 0.0, value)
    value = ops.where(s == 1.0, float("inf"), value)
    return ops.where((s >= 1.0) & (q == q), value, float("nan"))
