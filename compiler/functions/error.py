"""Kin of the error function: its inverse, the inverse of the normal distribution, and erfc scaled by its decay.

The inverse of erf is y times a smooth function of w = -log(1 - y^2) (M. Giles, "Approximating the erfinv function",
2011), here as three Chebyshev series; for large w they are series of 1 / sqrt w, which reach as far as float64 does.
"""

from __future__ import annotations

from math import sqrt

from compiler.functions.coefficients import ERFCX, INVERSE_ERF_FAR, INVERSE_ERF_MIDDLE, INVERSE_ERF_NEAR
from compiler.functions.series import chebyshev
from compiler.ir.functions import function, named
from compiler.ir.ops import ops
from compiler.ir.value import Value


def _inverse_erf_over_y(w: Value) -> Value:
    near = named("near", chebyshev(w * 0.32 - 1.0, INVERSE_ERF_NEAR))
    root = named("root", ops.sqrt(w))
    inverse = named("inverse", 1.0 / root)
    middle = named("middle", chebyshev(inverse * 10.0 - 3.0, INVERSE_ERF_MIDDLE))
    low, high = 1 / 28, 1 / 5
    far = named("far", chebyshev(inverse * (2 / (high - low)) - (high + low) / (high - low), INVERSE_ERF_FAR))
    return ops.where(w < 6.25, near, root * ops.where(w < 25.0, middle, far))


@function
def inverse_erf(y: Value) -> Value:
    """The number whose error function is y."""
    w = named("w", -ops.log((1.0 - y) * (1.0 + y)))
    value = y * _inverse_erf_over_y(w)
    return ops.where(abs(y) == 1.0, y * float("inf"), value)


@function
def inverse_normal(p: Value) -> Value:
    """The number below which a standard normal variable lies with probability p."""
    w = named("w", -(ops.log(p) + ops.log(4.0 - 4.0 * p)))
    value = (p - 0.5) * (2 * sqrt(2)) * _inverse_erf_over_y(w)
    return ops.where(p == 0.0, -float("inf"), ops.where(p == 1.0, float("inf"), value))


@function
def scaled_erfc(x: Value) -> Value:
    """exp(x^2) erfc(x)."""
    size = named("size", abs(x))
    # One series for all x >= 0 (M. Shepherd and J. Laframboise, 1981).
    t = ops.where(size < 1e30, (size - 3.75) / (size + 3.75), 1.0)
    positive = named("positive", chebyshev(named("t", t), ERFCX) / (1.0 + 2.0 * size))
    positive = ops.where(x == x, positive, x)
    return ops.where(x < 0.0, 2.0 * ops.exp(x * x) - positive, positive)
