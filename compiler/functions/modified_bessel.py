"""Modified Bessel functions of order 0 and 1.

The power series of I has only positive terms, so it is as exact as its last sum; that of K is a logarithm times I and
another power series (NIST's Digital Library of Mathematical Functions, 10.25.2 and 10.31). Far from zero they are
exp(x) / sqrt(x), or exp(-x) / sqrt(x), times a smooth function of 1 / x.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial

from compiler.functions.coefficients import I0_FAR, I1_FAR, K0_FAR, K1_FAR
from compiler.functions.series import chebyshev, power_series
from compiler.ir.functions import function, named
from compiler.ir.ops import ops
from compiler.ir.value import Value

EULER = 0.57721566490153286061
#: Where the power series end.
FAR_I, FAR_K = 8.0, 2.0


def _harmonic(k: int) -> Fraction:
    return sum((Fraction(1, j) for j in range(1, k + 1)), Fraction(0))


def _series_of_i(x: Value, order: int, largest: float) -> Value:
    quarter = named("quarter", x * x * 0.25)
    total = power_series(quarter, lambda k: Fraction(1, factorial(k) * factorial(k + order)), largest**2 / 4)
    return total * x * 0.5 if order else total


def _i(x: Value, order: int, is_scaled: bool) -> Value:
    """I of `order`, times exp(-|x|) where it is scaled."""
    size = named("size", abs(x))
    near = _series_of_i(size, order, FAR_I)
    if is_scaled:
        near = near * ops.exp(-size)
    far = chebyshev(2 * FAR_I / size - 1.0, (I0_FAR, I1_FAR)[order]) / ops.sqrt(size)
    if not is_scaled:
        # In two steps, as exp(x) overflows before I does.
        half = named("half", ops.exp(size * 0.5))
        far = far * half * half
    value = ops.where(size < FAR_I, named("near", near), named("far", far))
    return ops.where(x < 0.0, -value, value) if order else value


def _k(x: Value, order: int, is_scaled: bool) -> Value:
    """K of `order`, times exp(x) where it is scaled."""
    quarter = x * x * 0.25
    logarithm = named("logarithm", ops.log(x * 0.5))
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
        near = ops.where(x == 0.0, float("inf"), near)
    far = chebyshev(2 * FAR_K / x - 1.0, (K0_FAR, K1_FAR)[order]) / ops.sqrt(x)
    exponential = named("exponential", ops.exp(x if is_scaled else -x))
    near, far = (near * exponential, far) if is_scaled else (near, far * exponential)
    return ops.where(x <= FAR_K, near, far)


def _register(name: str, summary: str, formula: Callable[[Value, int, bool], Value], order: int, scaled: bool) -> None:
    def definition(x: Value) -> Value:
        return formula(x, order, scaled)

    definition.__name__, definition.__doc__ = name, summary
    function(definition)


for _order in (0, 1):
    for _letter, _formula, _kind, _scale in (("i", _i, "first", "exp(-|x|)"), ("k", _k, "second", "exp(x)")):
        _symbol = f"{_letter.upper()}{_order}(x)"
        _register(
            f"bessel_{_letter}{_order}",
            f"{_symbol}, the modified Bessel function of the {_kind} kind and order {_order}.",
            _formula, _order, False,
        )  # fmt: skip
        _register(f"scaled_bessel_{_letter}{_order}", f"{_scale} {_symbol}.", _formula, _order, True)
