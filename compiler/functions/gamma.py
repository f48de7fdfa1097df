"""The logarithmic derivative of the gamma function.

By the Euler-Maclaurin formula (NIST's Digital Library of Mathematical Functions, 5.11.2): the terms of a sum are added
up to where its asymptotic series, whose coefficients are Bernoulli's numbers, is exact.
"""

from __future__ import annotations

from math import pi

import torch

from compiler.functions.series import bernoulli, polynomial
from compiler.ir.functions import function, named
from compiler.ir.ops import ops
from compiler.ir.value import Value


@function
def psi(x: Value) -> Value:
    """The digamma function, the derivative of log gamma(x)."""
    terms, start = (8, 10) if x.dtype == torch.float64 else (4, 6)
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
