"""The coefficients of `compiler/functions/coefficients.py` and of the C++ header `gamma_series.h`: computed here, to 50
digits, from the functions themselves.

    python tools/approximations.py write     compute all of them and write the files (some minutes)
    python tools/approximations.py check     compute all of them and compare

A Chebyshev series comes from interpolation at Chebyshev's points (Trefethen, "Approximation Theory and Approximation
Practice", 2013, chapter 3): the coefficients of the interpolating polynomial are a discrete cosine transform of the
function's values. Cut off anywhere it is nearly the best polynomial of its degree, so one table serves float64 and,
with fewer terms, float32. Functions come from mpmath. Where a function has a power series or an asymptotic series with
known terms (Bernoulli's numbers) no table is needed, and `compiler/functions` computes the terms.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp

FILE = Path(__file__).resolve().parent.parent / "compiler" / "functions" / "coefficients.py"
HEADER_FILE = FILE.parent.parent / "codegen" / "cpp" / "include" / "gamma_series.h"
DIGITS = 50
#: Coefficients that are smaller than this part of the largest one do nothing in float64.
SMALLEST = mp.mpf(2) ** -57

HEADER = '''"""Chebyshev series of special functions, from `python tools/approximations.py write`.

A series `(c0, c1, ...)` stands for the sum of `c[k] * T[k](t)` for t in [-1, 1].
"""

'''


@dataclass(frozen=True)
class Series:
    """A table: its name, what it approximates, the function of t, and how many points show where it ends."""

    name: str
    meaning: str
    function: Callable[[Any], Any]
    points: int = 64

    def terms(self) -> list[Any]:
        values = [self.function(mp.cos(mp.pi * (2 * k + 1) / (2 * self.points))) for k in range(self.points)]
        found = [
            2 * mp.fsum(v * mp.cos(mp.pi * j * (2 * k + 1) / (2 * self.points)) for k, v in enumerate(values))
            / self.points
            for j in range(self.points)
        ]  # fmt: skip
        found[0] /= 2
        return found

    def coefficients(self) -> list[float]:
        """Those that matter in float64. Raises ArithmeticError where the points are too few to tell."""
        found = self.terms()
        largest = max(abs(c) for c in found)
        count = max(place for place, c in enumerate(found) if abs(c) > SMALLEST * largest) + 1
        if count > self.points * 3 // 4:
            raise ArithmeticError(f"{self.name}: {self.points} points do not show where the series ends")
        return [float(c) for c in found[:count]]


# --- the error function


def inverse_erf_over_y(w: Any) -> Any:
    """erfinv(y) / y for w = -log(1 - y^2), by Newton's method on the logarithm of erfc."""
    y = mp.sqrt(-mp.expm1(-w))
    if y == 0:
        return mp.sqrt(mp.pi) / 2
    wanted = -w - mp.log(1 + y)  # log(1 - y)
    z = mp.sqrt(w) * mp.mpf("0.9")
    for _ in range(200):
        value = mp.erfc(z)
        step = (mp.log(value) - wanted) * value * mp.sqrt(mp.pi) / 2 * mp.exp(z * z)
        z += step
        if abs(step) < mp.mpf(10) ** (5 - DIGITS):
            return z / y
    raise ArithmeticError(f"no inverse of erf for w = {w}")


def error_function() -> list[Series]:
    def of_root(low: float, high: float) -> Callable[[Any], Any]:
        """On low <= sqrt(w) <= high, of t that runs with 1 / sqrt(w)."""

        def of(t: Any) -> Any:
            a, b = 1 / mp.mpf(high), 1 / mp.mpf(low)
            root = 1 / (a + (b - a) * (t + 1) / 2)
            return inverse_erf_over_y(root * root) / root

        return of

    return [
        Series("ERFCX", "(1 + 2 x) erfcx(x), x = 3.75 (1 + t) / (1 - t)",
               lambda t: (1 + 2 * (x := mp.mpf("3.75") * (1 + t) / (1 - t))) * mp.exp(x * x) * mp.erfc(x)),
        Series("INVERSE_ERF_NEAR", "erfinv(y) / y, -log(1 - y^2) = 3.125 (t + 1)",
               lambda t: inverse_erf_over_y(mp.mpf("3.125") * (t + 1))),
        Series("INVERSE_ERF_MIDDLE", "erfinv(y) / (y s), s^2 = -log(1 - y^2), 1 / s = 0.2 + 0.1 (t + 1)",
               of_root(2.5, 5)),
        Series("INVERSE_ERF_FAR", "erfinv(y) / (y s), s^2 = -log(1 - y^2), 1 / s = 1/28 + (1/5 - 1/28) (t + 1) / 2",
               of_root(5, 28)),
    ]  # fmt: skip


# --- polynomials of the C++ header

CPP_HEADER = """// The polynomials of gamma.h, from `python tools/approximations.py write`.
#pragma once

#include "elementary.h"

namespace fusionscope {
"""


def gamma_polynomials() -> list[tuple[Series, Any, Any, dict[str, int]]]:
    """Each series, the ends of the interval of its own variable, and how many terms floats and doubles need."""
    half, least = mp.mpf(1) / 2, mp.mpf(5) / 2

    def near(t: Any) -> Any:
        return mp.loggamma(2 + t / 2) / (t / 2) if t else 1 - mp.euler

    def far(t: Any) -> Any:
        z = least / mp.sqrt((t + 1) / 2)
        return z * (mp.loggamma(z) - (z - half) * (mp.log(z) - 1) - (mp.log(2 * mp.pi) - 1) / 2)

    def sine(t: Any) -> Any:
        turn = mp.sqrt((t + 1) / 8)
        return mp.sin(mp.pi * turn) / turn

    return [
        (Series("log_gamma_near", "log gamma(2 + s) / s for |s| <= 1/2", near),
         -half, half, {"float": 10, "double": 22}),
        (Series("log_gamma_far", "z times what is left by Stirling's formula, of 1 / z^2, for z >= 5/2", far),
         mp.mpf(0), 1 / least**2, {"float": 5, "double": 16}),
        (Series("sine_of_half_turns", "sin(pi r) / r, of r^2, for |r| <= 1/2", sine),
         mp.mpf(0), mp.mpf(1) / 4, {"float": 6, "double": 10}),
    ]  # fmt: skip


def in_powers(series: list[Any], low: Any, high: Any) -> list[Any]:
    """The coefficients of the powers of x, for the sum of `series[k] * T[k](t)` where t runs from -1 to 1 as x does
    from `low` to `high`."""
    scale, shift = 2 / (high - low), -(high + low) / (high - low)

    def times_t(row: list[Any]) -> list[Any]:
        return [shift * a + scale * b for a, b in zip([*row, mp.mpf(0)], [mp.mpf(0), *row], strict=True)]

    before, row, total = [mp.mpf(0)], [mp.mpf(1)], [mp.mpf(0)] * len(series)
    for k, coefficient in enumerate(series):
        total = [t + coefficient * c for t, c in zip(total, [*row, *[mp.mpf(0)] * len(total)], strict=False)]
        following = times_t(row) if k == 0 else [2 * c for c in times_t(row)]
        padded = [*before, *[mp.mpf(0)] * (len(following) - len(before))]
        before, row = row, following if k == 0 else [a - b for a, b in zip(following, padded, strict=True)]
    return total


def cpp_text() -> str:
    mp.mp.dps = DIGITS
    parts = [CPP_HEADER]
    for series, low, high, counts in gamma_polynomials():
        parts.append(f"\n// {series.meaning}.\n")
        for kind, count in counts.items():
            numbers = in_powers(series.terms()[:count], low, high)
            suffix, digits = ("f", 9) if kind == "float" else ("", 17)
            texts = [f"{mp.nstr(c, digits, strip_zeros=False, min_fixed=0, max_fixed=0)}{suffix}" for c in numbers]
            arguments = textwrap.fill(", ".join(texts), 112, initial_indent=" " * 8, subsequent_indent=" " * 8)
            parts.append(f"inline {kind} {series.name}({kind} x) {{\n    return polynomial(x,\n{arguments});\n}}\n")
    parts.append("\n}  // namespace fusionscope\n")
    return "".join(parts)


# --- the files


def text() -> str:
    mp.mp.dps = DIGITS
    parts = [HEADER]
    for series in error_function():
        parts.append(f"#: {series.meaning}.\n{_tuple(series.name, series.coefficients())}")
    return "".join(parts).rstrip() + "\n"


def _tuple(name: str, values: list[float]) -> str:
    return f"{name}: tuple[float, ...] = (\n{_numbers(values, 4)})  # fmt: skip\n\n"


def _numbers(values: list[float], indent: int) -> str:
    rows = [values[place : place + 4] for place in range(0, len(values), 4)]
    return "".join(f"{' ' * indent}{', '.join(repr(v) for v in row)},\n" for row in rows)


def main() -> int:
    if sys.argv[1:] == ["write"]:
        FILE.write_text(text(), encoding="utf-8")
        HEADER_FILE.write_text(cpp_text(), encoding="utf-8")
        return 0
    if sys.argv[1:] == ["check"]:
        is_same = FILE.read_text(encoding="utf-8") == text() and HEADER_FILE.read_text(encoding="utf-8") == cpp_text()
        print("the coefficients are what they should be" if is_same else "the coefficients differ from the files'")
        return 0 if is_same else 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
