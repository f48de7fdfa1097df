"""Modified Bessel functions of order 0 and 1.

The power series of I has only positive terms, so it is as exact as its last sum; that of K is a logarithm times I and
another power series (NIST's Digital Library of Mathematical Functions, 10.25.2 and 10.31). Far from zero they are
exp(x) / sqrt(x), or exp(-x) / sqrt(x), times a smooth function of 1 / x.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from compiler.functions.coefficients import I0_FAR, I1_FAR, K0_FAR, K1_FAR
from compiler.functions.series import chebyshev, power_series
from compiler.ir.functions import function, named
from compiler.ir.terms import Term, call, where

EULER = 0.57721566490153286061
#: Where the power series end.
FAR_I, FAR_K = 8.0, 2.0


def _harmonic(k: int) -> Fraction:
    return sum((Fraction(1, j) for j in range(1, k + 1)), Fraction(0))


def _series_of_i(x: Term, order: int, largest: float) -> Term:
    quarter = named("quarter", x * x * 0.25)
    total = power_series(quarter, lambda k: Fraction(1, factorial(k) * factorial(k + order)), largest**2 / 4)
    return total * x * 0.5 if order else total


def _i(x: Term, order: int, is_scaled: bool) -> Term:
    """I of `order`, times exp(-|x|) where it is scaled."""
    size = named("size", abs(x))
    near = _series_of_i(size, order, FAR_I)
    if is_scaled:
        near = near * call("exp", -size)
    far = chebyshev(2 * FAR_I / size - 1.0, (I0_FAR, I1_FAR)[order]) / call("sqrt", size)
    if not is_scaled:
        # In two steps, as exp(x) overflows before I does.
        half = named("half", call("exp", size * 0.5))
        far = far * half * half
    value = where(size < FAR_I, named("near", near), named("far", far))
    return where(x < 0.0, -value, value) if order else value


def _k(x: Term, order: int, is_scaled: bool) -> Term:
    """K of `order`, times exp(x) where it is scaled."""
    quarter = x * x * 0.25
    logarithm = named("logarithm", call("log", x * 0.5))
    if order == 0:
        rest = power_series(quarter, lambda k: _harmonic(k) / factorial(k) ** 2, FAR_K**2 / 4)
        near = rest - (logarithm + EULER) * _series_of_i(x, 0, FAR_K)
    else:
        rest = power_series(
            quarter,
            lambda k: (float(_harmonic(k) + _harmonic(k + 1)) - 2 * EULER) / (factorial(k) * factorial(k + 1)),
            FAR_K**2 / 4,
        )
        near = logarithm * _series_of_i(x, 1, FAR_K) + 1.0 / x - x * 0.25 * rest
        near = where(x == 0.0, float("inf"), near)
    far = chebyshev(2 * FAR_K / x - 1.0, (K0_FAR, K1_FAR)[order]) / call("sqrt", x)
    exponential = named("exponential", call("exp", x if is_scaled else -x))
    near, far = (near * exponential, far) if is_scaled else (near, far * exponential)
    return where(x <= FAR_K, near, far)


@function
def bessel_i0(x: Term) -> Term:
    """I0(x), the modified Bessel function of the first kind and order 0."""
    return _i(x, 0, is_scaled=False)


@function
def scaled_bessel_i0(x: Term) -> Term:
    """exp(-|x|) I0(x)."""
    return _i(x, 0, is_scaled=True)


@function
def bessel_i1(x: Term) -> Term:
    """I1(x), the modified Bessel function of the first kind and order 1."""
    return _i(x, 1, is_scaled=False)


@function
def scaled_bessel_i1(x: Term) -> Term:
    """exp(-|x|) I1(x)."""
    return _i(x, 1, is_scaled=True)


@function
def bessel_k0(x: Term) -> Term:
    """K0(x), the modified Bessel function of the second kind and order 0."""
    return _k(x, 0, is_scaled=False)


@function
def scaled_bessel_k0(x: Term) -> Term:
    """exp(x) K0(x)."""
    return _k(x, 0, is_scaled=True)


@function
def bessel_k1(x: Term) -> Term:
    """K1(x), the modified Bessel function of the second kind and order 1."""
    return _k(x, 1, is_scaled=False)


@function
def scaled_bessel_k1(x: Term) -> Term:
    """exp(x) K1(x)."""
    return _k(x, 1, is_scaled=True)
