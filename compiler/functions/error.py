"""Kin of the error function: its inverse, the inverse of the normal distribution, and erfc scaled by its decay.

The inverse of erf is y times a smooth function of w = -log(1 - y^2) (M. Giles, "Approximating the erfinv function",
2011), here as three Chebyshev series; for large w they are series of 1 / sqrt w, which reach as far as float64 does.
"""

from __future__ import annotations

from math import sqrt

from compiler.functions.coefficients import ERFCX, INVERSE_ERF_FAR, INVERSE_ERF_MIDDLE, INVERSE_ERF_NEAR
from compiler.functions.series import chebyshev
from compiler.ir.functions import function, named
from compiler.ir.terms import Term, call, where


def _inverse_erf_over_y(w: Term) -> Term:
    near = named("near", chebyshev(w * 0.32 - 1.0, INVERSE_ERF_NEAR))
    root = named("root", call("sqrt", w))
    inverse = named("inverse", 1.0 / root)
    middle = named("middle", chebyshev(inverse * 10.0 - 3.0, INVERSE_ERF_MIDDLE))
    low, high = 1 / 28, 1 / 5
    far = named("far", chebyshev(inverse * (2 / (high - low)) - (high + low) / (high - low), INVERSE_ERF_FAR))
    return where(w < 6.25, near, root * where(w < 25.0, middle, far))


@function
def inverse_erf(y: Term) -> Term:
    """The number whose error function is y."""
    w = named("w", -call("log", (1.0 - y) * (1.0 + y)))
    value = y * _inverse_erf_over_y(w)
    return where(abs(y) == 1.0, y * float("inf"), value)


@function
def inverse_normal(p: Term) -> Term:
    """The number below which a standard normal variable lies with probability p."""
    w = named("w", -(call("log", p) + call("log", 4.0 - 4.0 * p)))
    value = (p - 0.5) * (2 * sqrt(2)) * _inverse_erf_over_y(w)
    return where(p == 0.0, -float("inf"), where(p == 1.0, float("inf"), value))


@function
def scaled_erfc(x: Term) -> Term:
    """exp(x^2) erfc(x)."""
    size = named("size", abs(x))
    # One series for all x >= 0 (M. Shepherd and J. Laframboise, 1981).
    t = where(size < 1e30, (size - 3.75) / (size + 3.75), 1.0)
    positive = named("positive", chebyshev(named("t", t), ERFCX) / (1.0 + 2.0 * size))
    positive = where(x == x, positive, x)
    return where(x < 0.0, 2.0 * call("exp", x * x) - positive, positive)
