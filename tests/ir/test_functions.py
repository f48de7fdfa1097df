"""Named functions: traced once, called by name, the same in the interpreter, in C++ and in Triton."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

import compiler.functions  # noqa: F401
from compiler.ir.body import trace
from compiler.ir.functions import function, traced
from compiler.ir.index import Dim, Index
from compiler.ir.interpret import call_function
from compiler.ir.ops import NAMED, ops
from compiler.ir.value import Value
from tools.approximations import error_function

#: mpmath has no types.
Exact = Callable[..., Any]


def spread(low: float, high: float, count: int = 60) -> list[float]:
    """Numbers between the two, evenly by their logarithms where both are positive."""
    places = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    if low > 0:
        return [float(x) for x in torch.exp(places * math.log(high / low)) * low]
    return [float(x) for x in low + places * (high - low)]


def normal_quantile(p: Any) -> Any:
    """By the inverse of erf, with digits enough for a small p."""
    with mpmath.workdps(80):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


#: Function, mpmath's, arguments, and the amplitude that errors are measured by where it is not the value itself: a wave
#: has no relative accuracy near its zeros.
CASES: list[tuple[str, Exact, list[float], Exact | None]] = [
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
            size = abs(wanted) if scale is None else scale(mpmath.mpf(place))
            if size > torch.finfo(dtype).tiny:
                worst = max(worst, float(abs(value - wanted) / size))
    return worst / torch.finfo(dtype).eps


@pytest.mark.parametrize("name, exact, places, scale", CASES, ids=[case[0] for case in CASES])
def test_function_is_right_to_the_last_digits(
    name: str, exact: Exact, places: list[float], scale: Exact | None
) -> None:
    # A decay exp(-x) or a wave of the phase x cannot be better than its argument: 80 units at x = 80, at most.
    assert errors(name, exact, places, scale, torch.float32) < 40
    assert errors(name, exact, places, scale, torch.float64) < 200


def test_a_body_calls_a_function_by_its_name() -> None:
    x0 = Index.of(Dim("x0", 8))
    body = trace(lambda: ops.store("y", x0, ops.scaled_erfc(ops.load("x", x0, torch.float32))))
    assert str(body) == "v0 = load x[x0]\nv1 = scaled_erfc v0\nstore y[x0] = v1"
    assert body.operations == NAMED["scaled_erfc"].cost > 30


def test_a_record_is_traced_once_for_each_dtype() -> None:
    assert traced("scaled_erfc", torch.float32) is traced("scaled_erfc", torch.float32)
    short, long = (len(traced("scaled_erfc", dtype).instructions) for dtype in (torch.float32, torch.float64))
    assert short < long


def test_a_name_is_given_once() -> None:
    def sin(x: Value) -> Value:
        return x

    with pytest.raises(ValueError, match="already"):
        function(sin)


def test_every_function_says_what_it_computes() -> None:
    for name in NAMED:
        assert traced(name, torch.float32).summary.endswith(".")


def test_coefficients_are_those_that_mpmath_computes() -> None:
    from compiler.functions import coefficients

    with mpmath.workdps(50):
        for series in error_function():
            assert getattr(coefficients, series.name) == tuple(series.coefficients()), series.name


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def test_infinities_and_poles() -> None:
    infinity = float("inf")
    assert call_function("psi", [values(0.0, -0.0)]).tolist() == [-infinity, infinity]
