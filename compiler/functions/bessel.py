"""Bessel functions of order 0 and 1, and Airy's function.

Near zero they are entire functions of x^2 and a Chebyshev series does. Far from it they are waves of a slowly changing
amplitude, sqrt(2 / pi x) (P cos(x - a) - Q sin(x - a)) with P and Q smooth functions of 1 / x^2 (NIST's Digital Library
of Mathematical Functions, 10.17). The phase is taken apart, cos(x - pi/4) = (cos x + sin x) / sqrt 2, since a large x
less pi/4 would lose the digits that sine and cosine still see.
"""

from __future__ import annotations

from math import pi, sqrt

from compiler.functions.coefficients import (
    AIRY_FAR,
    AIRY_NEAR,
    AIRY_P,
    AIRY_Q,
    J0_NEAR,
    J1_NEAR,
    P0_FAR,
    P1_FAR,
    Q0_FAR,
    Q1_FAR,
    Y0_NEAR,
    Y1_NEAR,
)  # fmt: skip
from compiler.functions.series import chebyshev
from compiler.ir.functions import function, named
from compiler.ir.ops import ops
from compiler.ir.value import Value

#: Where the series near zero ends.
FAR = 8.0


def _near(x: Value) -> Value:
    return named("t", x * x * (2 / FAR**2) - 1.0)


def _waves(x: Value, order: int) -> tuple[Value, Value]:
    """J and Y of `order` for x >= 8."""
    inverse = named("inverse", 1.0 / x)
    t = named("t_far", inverse * inverse * (2 * FAR**2) - 1.0)
    p = named("in_phase", chebyshev(t, (P0_FAR, P1_FAR)[order]))
    q = named("out_of_phase", chebyshev(t, (Q0_FAR, Q1_FAR)[order]) * inverse)
    cosine, sine = ops.cos(x), ops.sin(x)
    # cos and sin of x - pi/4, and of x - 3 pi/4, times sqrt 2.
    cosine, sine = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
    amplitude = named("amplitude", ops.sqrt(inverse * (1 / pi)))
    return amplitude * (p * cosine - q * sine), amplitude * (p * sine + q * cosine)


@function
def bessel_j0(x: Value) -> Value:
    """J0(x), the Bessel function of the first kind and order 0."""
    size = named("size", abs(x))
    near = named("near", chebyshev(_near(size), J0_NEAR))
    return ops.where(size < FAR, near, _waves(size, 0)[0])


@function
def bessel_j1(x: Value) -> Value:
    """J1(x), the Bessel function of the first kind and order 1."""
    size = named("size", abs(x))
    near = named("near", size * chebyshev(_near(size), J1_NEAR))
    value = ops.where(size < FAR, near, _waves(size, 1)[0])
    return ops.where(x < 0.0, -value, value)


@function
def bessel_y0(x: Value) -> Value:
    """Y0(x), the Bessel function of the second kind and order 0."""
    t = _near(x)
    near = ops.log(x) * (2 / pi) * chebyshev(t, J0_NEAR) + chebyshev(t, Y0_NEAR)
    return ops.where(x < FAR, near, _waves(x, 0)[1])


@function
def bessel_y1(x: Value) -> Value:
    """Y1(x), the Bessel function of the second kind and order 1."""
    t = _near(x)
    j1 = named("j1", x * chebyshev(t, J1_NEAR))
    near = (ops.log(x) * j1 - 1.0 / x) * (2 / pi) + x * chebyshev(t, Y1_NEAR)
    near = ops.where(x == 0.0, -float("inf"), near)
    return ops.where(x < FAR, near, _waves(x, 1)[1])


@function
def airy_ai(x: Value) -> Value:
    """Ai(x), Airy's function."""
    near = named("near", chebyshev((x + 1.0) * (1 / 3), AIRY_NEAR))
    size = named("size", abs(x))
    root = named("root", ops.sqrt(size))
    zeta = named("zeta", size * root * (2 / 3))
    quarter = named("quarter", ops.sqrt(root))
    # (2 / x)^(3/2) is 2 sqrt 2 / (x root x).
    decay = chebyshev(2 * 2 * sqrt(2) / (size * root) - 1.0, AIRY_FAR) * (0.5 / sqrt(pi))
    decay = named("decay", decay * ops.exp(-zeta) / quarter)
    inverse = named("inverse", 1.0 / (size * root))
    t = named("t", inverse * inverse * 128.0 - 1.0)
    in_phase, out_of_phase = chebyshev(t, AIRY_P), chebyshev(t, AIRY_Q) * inverse
    cosine, sine = ops.cos(zeta), ops.sin(zeta)
    wave = in_phase * (sine + cosine) - out_of_phase * (cosine - sine)
    wave = named("wave", wave * sqrt(0.5 / pi) / quarter)
    return ops.where(x > 2.0, decay, ops.where(x < -4.0, wave, near))


@function
def spherical_bessel_j0(x: Value) -> Value:
    """sin(x) / x, the spherical Bessel function of order 0."""
    ratio = ops.where(x == 0.0, 1.0, ops.sin(x) / x)
    return ops.where(abs(x) == float("inf"), 0.0, ratio)
