"""The coefficients of `compiler/functions/coefficients.py` and of the C++ header `gamma_series.h`: computed here, to 50
digits, from the functions themselves.

    python tools/approximations.py write     compute all of them and write the files (some minutes)
    python tools/approximations.py check     compute all of them and compare

A Chebyshev series comes from interpolation at Chebyshev's points (Trefethen, "Approximation Theory and Approximation
Practice", 2013, chapter 3): the coefficients of the interpolating polynomial are a discrete cosine transform of the
function's values. Cut off anywhere it is nearly the best polynomial of its degree, so one table serves float64 and,
with fewer terms, float32. Functions come from mpmath. Where a function has a power series or an asymptotic series with
known terms (Bernoulli's numbers, factorials) no table is needed, and `compiler/functions` computes the terms.
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

HEADER = '''"""Chebyshev series and Taylor series of special functions, from `python tools/approximations.py write`.

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


# --- Bessel functions


def modulus_and_phase(order: int, x: Any) -> tuple[Any, Any]:
    """P and Q of J = sqrt(2 / pi x) (P cos c - Q sin c), Y = sqrt(2 / pi x) (P sin c + Q cos c),
    c = x - (2 order + 1) pi / 4."""
    c = x - (2 * order + 1) * mp.pi / 4
    j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
    return scale * (j * mp.cos(c) + y * mp.sin(c)), scale * (y * mp.cos(c) - j * mp.sin(c))


def near(function: Callable[[Any], Any], limit: Any, largest: int) -> Callable[[Any], Any]:
    """An even function on [0, largest], of t = 2 (x / largest)^2 - 1."""

    def of(t: Any) -> Any:
        x = largest * mp.sqrt((t + 1) / 2)
        return function(x) if x > 0 else limit

    return of


def far(function: Callable[[Any], Any], smallest: int, power: int = 1) -> Callable[[Any], Any]:
    """A function on [smallest, infinity), of t = 2 (smallest / x)^power - 1."""
    return lambda t: function(smallest / ((t + 1) / 2) ** (mp.mpf(1) / power))


def bessel() -> list[Series]:
    rows: list[Series] = []
    for n in (0, 1):
        rows += [
            Series(f"J{n}_NEAR", f"J{n}(x){' / x' if n else ''}, x^2 = 32 (t + 1)",
                   near(lambda x, n=n: mp.besselj(n, x) / x**n, 1, 8)),
            Series(f"Y{n}_NEAR", "Y0(x) - 2/pi log(x) J0(x), x^2 = 32 (t + 1)" if n == 0
                   else "(Y1(x) - 2/pi (log(x) J1(x) - 1 / x)) / x, x^2 = 32 (t + 1)",
                   near(lambda x, n=n: (mp.bessely(n, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(n, x)
                        - (1 / x if n else 0))) / x**n, 0, 8)),
            Series(f"P{n}_FAR", f"the part of J{n} and Y{n} in phase, x^2 = 128 / (t + 1)",
                   far(lambda x, n=n: modulus_and_phase(n, x)[0], 8, 2)),
            Series(f"Q{n}_FAR", f"x times the part of J{n} and Y{n} out of phase, x^2 = 128 / (t + 1)",
                   far(lambda x, n=n: x * modulus_and_phase(n, x)[1], 8, 2)),
            Series(f"I{n}_FAR", f"sqrt(x) exp(-x) I{n}(x), x = 16 / (t + 1)",
                   far(lambda x, n=n: mp.sqrt(x) * mp.exp(-x) * mp.besseli(n, x), 8)),
            Series(f"K{n}_FAR", f"sqrt(x) exp(x) K{n}(x), x = 4 / (t + 1)",
                   far(lambda x, n=n: mp.sqrt(x) * mp.exp(x) * mp.besselk(n, x), 2)),
        ]  # fmt: skip
    return rows


# --- Airy's function


def airy_waves(z: Any) -> tuple[Any, Any]:
    """P and Q of Ai(-z) = (P sin c - Q cos c) / (sqrt(pi) z^(1/4)), c = 2/3 z^(3/2) + pi / 4."""
    c = mp.mpf(2) / 3 * z ** mp.mpf("1.5") + mp.pi / 4
    ai, bi, scale = mp.airyai(-z), mp.airybi(-z), mp.sqrt(mp.pi) * z ** mp.mpf("0.25")
    return scale * (ai * mp.sin(c) + bi * mp.cos(c)), scale * (bi * mp.sin(c) - ai * mp.cos(c))


def airy() -> list[Series]:
    def decay(x: Any) -> Any:
        zeta = mp.mpf(2) / 3 * x ** mp.mpf("1.5")
        return 2 * mp.sqrt(mp.pi) * x ** mp.mpf("0.25") * mp.exp(zeta) * mp.airyai(x)

    return [
        Series("AIRY_FAR", "2 sqrt(pi) x^(1/4) exp(z) Ai(x), z = 2/3 x^(3/2), (2 / x)^(3/2) = (t + 1) / 2",
               lambda t: decay(2 / ((t + 1) / 2) ** (mp.mpf(2) / 3))),
        Series("AIRY_NEAR", "Ai(x), x = 3 t - 1", lambda t: mp.airyai(3 * t - 1)),
        Series("AIRY_P", "the part of Ai(-z) in phase, (4 / z)^3 = (t + 1) / 2", far(lambda z: airy_waves(z)[0], 4, 3)),
        Series("AIRY_Q", "z^(3/2) times the part of Ai(-z) out of phase, (4 / z)^3 = (t + 1) / 2",
               far(lambda z: z ** mp.mpf("1.5") * airy_waves(z)[1], 4, 3)),
    ]  # fmt: skip


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


def log_gamma() -> list[Series]:
    def of(t: Any) -> Any:
        a = (t + 1) / 2
        return mp.loggamma(1 + a) / a if a else -mp.euler

    return [Series("LOG_GAMMA", "log(gamma(1 + a)) / a, a = (t + 1) / 2", of)]


def every_series() -> list[Series]:
    return [*bessel(), *airy(), *error_function(), *log_gamma()]


# --- Temme's series of the incomplete gamma functions


def temme(orders: int = 5, terms: int = 26) -> list[list[float]]:
    """Taylor coefficients of c[0](eta), c[1](eta), ...: the uniform expansion of the incomplete gamma functions
    (N. Temme, 1979; NIST's Digital Library of Mathematical Functions, 8.12.9-8.12.12).

    lambda(eta) solves eta^2 / 2 = lambda - 1 - log(lambda); c[0] = 1 / (lambda - 1) - 1 / eta, and
    c[k] = c[k-1]' / eta + (-1)^k g[k] / mu, where mu = lambda - 1."""
    count = terms + 2 * orders + 4
    # mu = lambda - 1 as a series of eta: mu' mu = eta (1 + mu), from the derivative of the definition.
    mu = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, count):
        # The coefficient of eta^n in mu mu' = eta + eta mu; mu[n] stands in it with the factor n + 1.
        rest = mp.fsum(k * mu[k] * mu[n + 1 - k] for k in range(2, n))
        mu.append((mu[n - 1] - rest) / (n + 1))
    inverse = [1 / mu[1]]  # of mu / eta
    for n in range(1, count - 1):
        inverse.append(-mp.fsum(mu[k + 1] * inverse[n - k] for k in range(1, n + 1)) / mu[1])
    series = [inverse[1:]]  # 1 / mu - 1 / eta
    gamma_star = stirling(orders)
    for k in range(1, orders):
        derivative = [n * c for n, c in enumerate(series[-1])][1:]
        sign = mp.mpf(-1) ** k * gamma_star[k]
        # Both parts begin with the power -1 of eta, where they cancel.
        total = [d + sign * i for d, i in zip(derivative, inverse, strict=False)]
        if abs(total[0]) > mp.mpf(10) ** (10 - DIGITS):
            raise ArithmeticError("the expansion has a pole")
        series.append(total[1:])
    return [[float(c) for c in row[:terms]] for row in series]


def stirling(count: int) -> list[Any]:
    """g[k] of the scaled gamma function: gamma*(a) ~ sum of g[k] / a^k, from the exponential of Stirling's series."""
    logarithm = [mp.mpf(0)] * (count + 1)
    for k in range(1, count + 1):
        if k % 2:
            logarithm[k] = mp.bernoulli(k + 1) / (k * (k + 1))
    result = [mp.mpf(1)]
    for n in range(1, count + 1):
        result.append(mp.fsum(k * logarithm[k] * result[n - k] for k in range(1, n + 1)) / n)
    return result


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
    for series in every_series():
        parts.append(f"#: {series.meaning}.\n{_tuple(series.name, series.coefficients())}")
    parts.append("#: Taylor series of c[0](eta), c[1](eta), ... in Temme's expansion of incomplete gamma functions.\n")
    rows = "".join(f"    (\n{_numbers(row, 8)}    ),\n" for row in temme())
    parts.append(f"TEMME: tuple[tuple[float, ...], ...] = (\n{rows})  # fmt: skip\n")
    return "".join(parts)


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
