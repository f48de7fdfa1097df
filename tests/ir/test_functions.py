"""Named functions: traced once, called by name, the same in the interpreter, in C++ and in Triton."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import pytest
import torch
from torch import Tensor

import compiler.functions  # noqa: F401
from compiler.ir.body import trace
from compiler.ir.functions import ON_INTEGERS, function, repeat, traced
from compiler.ir.index import Dim, Index
from compiler.ir.interpret import call_function
from compiler.ir.ops import NAMED, ops
from compiler.ir.value import Value
from tools.approximations import every_series

Exact = Callable[..., object]


def spread(low: float, high: float, count: int = 60) -> list[float]:
    """Numbers between the two, evenly by their logarithms where both are positive."""
    places = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    if low > 0:
        return [float(x) for x in torch.exp(places * math.log(high / low)) * low]
    return [float(x) for x in low + places * (high - low)]


BOTH_SIDES = [*spread(-40.0, 39.0), *spread(1e-6, 1e4, 20)]
POSITIVE = spread(1e-6, 80.0)


def normal_quantile(p: object) -> object:
    """By the inverse of erf, with digits enough for a small p."""
    with mpmath.workdps(80):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


#: Function, mpmath's, arguments, and the amplitude that errors are measured by where it is not the value itself: a wave
#: has no relative accuracy near its zeros.
CASES: list[tuple[str, Exact, list[float], Exact | None]] = [
    ("bessel_j0", lambda x: mpmath.besselj(0, x), BOTH_SIDES, lambda x: min(1, abs(x) ** -0.5)),
    ("bessel_j1", lambda x: mpmath.besselj(1, x), BOTH_SIDES, lambda x: min(abs(x), abs(x) ** -0.5)),
    ("bessel_y0", lambda x: mpmath.bessely(0, x), spread(1e-6, 1e4), lambda x: abs(mpmath.hankel1(0, x))),
    ("bessel_y1", lambda x: mpmath.bessely(1, x), spread(1e-6, 1e4), lambda x: abs(mpmath.hankel1(1, x))),
    ("airy_ai", mpmath.airyai, spread(-15.0, 40.0), lambda x: abs(mpmath.airyai(x)) + (x < 0) * abs(mpmath.airybi(x))),
    ("spherical_bessel_j0", mpmath.sinc, BOTH_SIDES, lambda x: min(1, 1 / abs(x))),
    ("bessel_i0", lambda x: mpmath.besseli(0, x), spread(-80.0, 79.0), None),
    ("bessel_i1", lambda x: mpmath.besseli(1, x), spread(-80.0, 79.0), None),
    ("scaled_bessel_i0", lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), BOTH_SIDES, None),
    ("scaled_bessel_i1", lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), BOTH_SIDES, None),
    ("bessel_k0", lambda x: mpmath.besselk(0, x), POSITIVE, None),
    ("bessel_k1", lambda x: mpmath.besselk(1, x), POSITIVE, None),
    ("scaled_bessel_k0", lambda x: mpmath.besselk(0, x) * mpmath.exp(x), POSITIVE, None),
    ("scaled_bessel_k1", lambda x: mpmath.besselk(1, x) * mpmath.exp(x), POSITIVE, None),
    ("inverse_erf", mpmath.erfinv, [*spread(-0.999, 0.99), *spread(1e-7, 0.99), 1 - 2.0**-20], None),
    ("inverse_normal", normal_quantile, [*spread(1e-30, 0.49), *spread(0.51, 0.9999)], None),
    ("scaled_erfc", lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [*spread(-5.0, 20.0), *spread(1e-6, 1e6)], None),
    ("psi", mpmath.digamma, [*spread(-9.7, 19.0), *spread(1e-5, 1e6)], lambda x: abs(mpmath.digamma(x)) + 3),
]  # fmt: skip


def errors(name: str, exact: Exact, places: list[float], scale: Exact | None, dtype: torch.dtype) -> float:
    """The largest error in units of the dtype's precision."""
    x = torch.tensor(places, dtype=dtype)
    ours = call_function(name, [x]).tolist()
    worst = 0.0
    with mpmath.workdps(40):
        for value, place in zip(ours, x.tolist(), strict=True):
            wanted = exact(mpmath.mpf(place))
            size = abs(wanted) if scale is None else scale(mpmath.mpf(place))  # type: ignore[arg-type]
            if size > torch.finfo(dtype).tiny:
                worst = max(worst, float(abs(value - wanted) / size))  # type: ignore[operator]
    return worst / torch.finfo(dtype).eps


@pytest.mark.parametrize("name, exact, places, scale", CASES, ids=[case[0] for case in CASES])
def test_function_is_right_to_the_last_digits(
    name: str, exact: Exact, places: list[float], scale: Exact | None
) -> None:
    # A decay exp(-x) or a wave of the phase x cannot be better than its argument: 80 units at x = 80, at most.
    assert errors(name, exact, places, scale, torch.float32) < 40
    assert errors(name, exact, places, scale, torch.float64) < 200


def test_incomplete_gamma_functions_are_right_in_every_part_of_the_plane() -> None:
    a = torch.tensor([1e-6, 0.1, 0.9, 1.0, 3.0, 9.9, 10.1, 100.0, 250.0, 1000.0, 40000.0], dtype=torch.float64)
    ratio = torch.tensor([0.05, 0.5, 0.75, 0.99, 1.0, 1.01, 1.2, 1.35, 3.0], dtype=torch.float64)
    a, x = (side.flatten() for side in torch.broadcast_tensors(a[:, None], a[:, None] * ratio))
    lower, upper = call_function("lower_gamma", [a, x]).tolist(), call_function("upper_gamma", [a, x]).tolist()
    with mpmath.workdps(50):
        for place, (p, q) in enumerate(zip(lower, upper, strict=True)):
            at = [mpmath.mpf(side[place].item()) for side in (a, x)]
            exact_q = mpmath.gammainc(at[0], at[1], mpmath.inf, regularized=True)
            for value, exact in ((p, 1 - exact_q), (q, exact_q)):
                # An exponent of hundreds costs as many units.
                if exact > 1e-290:
                    assert abs(value - exact) < 3e-13 * exact, (at, value, exact)


def test_zeta_is_right_on_both_sides() -> None:
    s = torch.tensor([1.01, 1.5, 2.0, 3.0, 8.5, 30.0], dtype=torch.float64)
    q = torch.tensor([1e-3, 0.5, 1.0, 7.3, 200.0, 1e6], dtype=torch.float64)
    s, q = (side.flatten() for side in torch.broadcast_tensors(s[:, None], q))
    # mpmath's zeta loses the digits by which its value is small.
    with mpmath.workdps(200):
        for ours, power, base in zip(
            call_function("hurwitz_zeta", [s, q]).tolist(), s.tolist(), q.tolist(), strict=True
        ):
            exact = mpmath.zeta(mpmath.mpf(power), mpmath.mpf(base))
            assert abs(ours - exact) < 1e-13 * exact
        # psi's derivatives at negative numbers, where the sum has terms of both signs.
        for n in (1, 2, 3):
            for base in (-0.25, -3.5, -1000.75):
                ours = call_function("hurwitz_zeta", [torch.tensor(x, dtype=torch.float64) for x in (n + 1.0, base)])
                exact = mpmath.psi(n, mpmath.mpf(base)) * (-1) ** (n + 1) / mpmath.factorial(n)
                assert abs(ours.item() - exact) < 1e-12 * abs(exact)


def test_loops_end_for_every_argument() -> None:
    """Also where adding one to a number does not change it."""
    edges = [0.0, 0.5, 1.0, 9.0, 3e7, 1e10, 1e30, float("inf"), float("nan")]
    x = torch.tensor([*edges, *(-edge for edge in edges)])
    pair = [x.repeat(len(x)), x.repeat_interleave(len(x))]
    for name in ("hurwitz_zeta", "lower_gamma", "upper_gamma", "hermite_h", "hermite_he"):
        assert call_function(name, pair).shape == pair[0].shape


def test_a_polynomial_of_a_high_degree_is_a_wave_of_small_error() -> None:
    x, n = torch.tensor([-0.9, -0.2, 0.4, 0.99], dtype=torch.float64), torch.tensor(1000.0, dtype=torch.float64)
    angle = torch.acos(x)
    assert torch.allclose(call_function("chebyshev_t", [x, n]), torch.cos(1000 * angle), atol=1e-12, rtol=0)


def test_a_body_calls_a_function_by_its_name() -> None:
    x0 = Index.of(Dim("x0", 8))
    body = trace(lambda: ops.store("y", x0, ops.bessel_j0(ops.load("x", x0, torch.float32))))
    assert str(body) == "v0 = load x[x0]\nv1 = bessel_j0 v0\nstore y[x0] = v1"
    assert body.operations == NAMED["bessel_j0"].cost > 30


def test_a_record_is_traced_once_for_each_dtype() -> None:
    assert traced("bessel_j0", torch.float32) is traced("bessel_j0", torch.float32)
    short, long = (len(traced("bessel_j0", dtype).block) for dtype in (torch.float32, torch.float64))
    assert short < long


def test_only_named_functions_repeat() -> None:
    def body() -> None:
        x = ops.constant(1.0, torch.float32)
        repeat({"x": x}, lambda x: x > 0.0, lambda x: {"x": x - 1.0}, trips=1)

    with pytest.raises(TypeError, match="only a named function repeats"):
        trace(body)


def test_a_name_is_given_once() -> None:
    def sin(x: Value) -> Value:
        return x

    with pytest.raises(ValueError, match="already"):
        function(sin)


def test_every_function_says_what_it_computes() -> None:
    for name in NAMED:
        dtype = torch.int64 if name in ON_INTEGERS else torch.float32
        assert traced(name, dtype).summary.endswith(".")


def test_coefficients_are_those_that_mpmath_computes() -> None:
    from compiler.functions import coefficients

    with mpmath.workdps(50):
        for series in every_series():
            assert getattr(coefficients, series.name) == tuple(series.coefficients()), series.name


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_infinities_and_poles() -> None:
    infinity = float("inf")
    assert call_function("airy_ai", [values(infinity)]).item() == 0
    assert call_function("bessel_k1", [values(0.0, infinity)]).tolist() == [infinity, 0]
    assert call_function("psi", [values(0.0, -0.0)]).tolist() == [-infinity, infinity]
    assert call_function("hurwitz_zeta", [values(2.0, 2.0), values(-1.0, infinity)]).tolist() == [infinity, 0]
    assert call_function("lower_gamma", [values(2.0, 0.0), values(infinity, 1.0)]).tolist() == [1, 1]
