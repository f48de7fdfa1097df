"""The table of operators, continued: special functions, and functions that take numbers apart.

Eager's own value in float64 judges them here, so samples keep away from where that is wrong: near zeros of the Bessel
functions, say, it is right to some eight digits only. `tests/ir/test_functions.py` judges by mpmath.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.lowering.operators import ALL, FLOATS, Operator, Samples, one, rows, two, values

INFINITY, NAN = float("inf"), float("nan")
#: For functions that eager itself gets wrong in float64, by some 1e-12 to 1e-9: without the row's float64 sample, which
#: float16 would bring along.
WITHOUT_DOUBLE = tuple(dtype for dtype in ALL if dtype != torch.float16)


def beside(samples: Samples, *edges: float) -> Samples:
    """The samples, and where the dtype is a float's a sample of the edges."""

    def of(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
        return [*samples(dtype), *([(torch.tensor(edges, dtype=dtype),)] if dtype.is_floating_point else [])]

    return of


def pairs(first: tuple[float, ...], second: tuple[float, ...]) -> Samples:
    """Random pairs, and every one of the first beside every one of the second."""

    def of(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
        random = two(dtype, low=0.5, high=6.0)
        if not dtype.is_floating_point:
            return random
        a, b = torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)
        return [*random, (a.repeat(len(second)), b.repeat_interleave(len(first)))]

    return of


def degrees(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Places and degrees, negative ones among them; where there is a wave, and where the recurrence goes on."""
    # Integers become float32, in which eager itself is the judge and loses a lot at a high degree.
    n = torch.tensor([-2, 0, 1, 2, 5, 6, 7, 9, 12] if dtype.is_floating_point else [-2, 0, 1, 3, 4])
    places = torch.tensor([-1.0, -0.7, 0.0, 0.3, 1.0, 1.25, -1.5])
    x = (places if dtype.is_floating_point else torch.tensor([-1, 0, 1, 2])).to(dtype)
    grid = (x.repeat(len(n)), n.repeat_interleave(len(x)).to(dtype if dtype != torch.bool else torch.int64))
    return [grid, (x[:, None], n[None, :]), (x, torch.tensor(4.0)), (x[:0], n[:0])]


def wholes(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [
        *two(dtype, low=-60.0, high=60.0),
        (torch.tensor([0, 0, 12, 120, 97, 1], dtype=dtype), torch.tensor([0, 9, 18, 84, 1, 0], dtype=dtype)),
    ]


def neighbours(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    edges = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-38, -1e-38, 1e-45, INFINITY, -INFINITY, NAN], dtype=dtype)
    return [*two(dtype), (edges.repeat(len(edges)), edges.repeat_interleave(len(edges)))]


def powers(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [
        (values(dtype, 3, 5), torch.tensor([-3, 0, 2, 5, 7])),
        (values(dtype, 4), values(torch.float32, 4, seed=1)),
        (values(dtype, 4), values(dtype, 4, seed=1)),
    ]


POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w"""

OPERATORS = [
    *rows("digamma", beside(partial(one, low=0.3, high=20.0), 0.0, -0.0, -1.0, -2.5, -7.25, 1e5, INFINITY, NAN)),
    *rows("i0", beside(one, 0.0, 8.0, -20.0, 85.0, NAN)),
    *rows("i0e i1 i1e", beside(one, 0.0, 8.0, -20.0, 85.0, NAN), ALL, torch.special),
    *rows("erfinv", beside(partial(one, low=-0.9, high=0.9), 0.0, 1.0, -1.0, 0.999, -2.0, INFINITY, NAN)),
    *rows("ndtri", beside(partial(one, low=0.01, high=0.99), 0.0, 1.0, 1e-4, 0.999, -0.5, 2.0, NAN), ALL,
          torch.special),
    *rows("erfcx", beside(one, 0.0, -4.0, 30.0, 1e4, INFINITY, NAN), ALL, torch.special),
    *rows("airy_ai", beside(partial(one, low=-2.0), 0.0, 2.0, -4.0, -20.0, 9.0, NAN), ALL, torch.special),
    *rows("bessel_j0 bessel_j1", beside(one, 0.0, -8.0, 8.5, 30.0, INFINITY, NAN), WITHOUT_DOUBLE, torch.special),
    *rows("bessel_y0 bessel_y1", beside(partial(one, low=1.5, high=3.5), 0.0, -1.0, 8.5, 30.0, NAN),
          (torch.float32, torch.int64), torch.special),
    *rows("modified_bessel_i0 modified_bessel_i1", beside(one, 0.0, 8.0, -20.0, 85.0, NAN), ALL, torch.special),
    *rows(
        "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1",
        beside(partial(one, low=0.1, high=4.0), 0.0, -1.0, 2.0, 50.0, INFINITY, NAN),
        ALL,
        torch.special,
    ),
    *rows("spherical_bessel_j0", beside(one, 0.0, 1e-3, 100.0, INFINITY, NAN), ALL, torch.special),
    *rows("gammainc gammaincc", pairs((0.0, 0.3, 1.0, 7.0, 40.0, -1.0), (0.0, 0.2, 1.2, 6.0, 38.0, 60.0, -2.0)), ALL,
          torch.special),
    *rows("zeta", pairs((0.5, 1.0, 1.5, 2.0, 3.0, 12.0), (-2.5, -2.0, 0.0, 0.25, 1.0, 30.0)), ALL, torch.special),
    *(
        Operator(f"polygamma.{n}", partial(lambda x, n: torch.polygamma(n, x), n=n),
                 beside(partial(one, low=0.3, high=20.0), 0.7, -1.25, 40.0, NAN),
                 WITHOUT_DOUBLE if n == 1 else ALL)
        for n in (0, 1, 2, 5)
    ),
    *rows(POLYNOMIALS, degrees, ALL, torch.special),
    Operator("legendre_polynomial_p.n", lambda x: torch.special.legendre_polynomial_p(x, 3), one),
    Operator("chebyshev_polynomial_t.x", lambda n: torch.special.chebyshev_polynomial_t(0.3, n), one),
    Operator("zeta.q", lambda s: torch.special.zeta(s, 2.5), partial(one, low=1.5, high=9.0)),
    *rows("angle", beside(one, 0.0, -0.0, INFINITY, -INFINITY, NAN)),
    *rows("frexp", beside(one, 0.0, -0.0, 1e-40, 3e-6, 65000.0, -1.0, 0.5), FLOATS),
    *rows("ldexp", powers),
    *rows("nextafter", neighbours, (torch.float32, torch.float64, torch.bfloat16)),
    *rows("gcd lcm", wholes, (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)),
]  # fmt: skip
