"""The table of operators, continued: special functions. Eager's own value in float64 judges them here, and mpmath in
`tests/ir/test_functions.py`."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.lowering.operators import ALL, Operator, Samples, one, positive, rows, two

INFINITY, NAN = float("inf"), float("nan")


def beside(samples: Samples, *edges: float) -> Samples:
    """The samples, and where the dtype is a float's a sample of the edges."""

    def of(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
        return [*samples(dtype), *([(torch.tensor(edges, dtype=dtype),)] if dtype.is_floating_point else [])]

    return of


OPERATORS = [
    *rows("digamma", beside(partial(one, low=0.3, high=20.0), 0.0, -0.0, -1.0, -2.5, -7.25, 1e5, INFINITY, NAN)),
    *rows("erfinv", beside(partial(one, low=-0.9, high=0.9), 0.0, 1.0, -1.0, 0.999, -2.0, INFINITY, NAN)),
    *rows("ndtri", beside(partial(one, low=0.01, high=0.99), 0.0, 1.0, 1e-4, 0.999, -0.5, 2.0, NAN), ALL,
          torch.special),
    *rows("erfcx", beside(one, 0.0, -4.0, 30.0, 1e4, INFINITY, NAN), ALL, torch.special),
    *rows("angle", beside(one, 0.0, -0.0, INFINITY, -INFINITY, NAN)),
    Operator("polygamma", lambda x: torch.polygamma(1, x), positive, (torch.float32,), falls_back=True),
    Operator("gammainc", torch.special.gammainc, partial(two, low=0.5, high=6.0), (torch.float32,), falls_back=True),
    Operator("gcd", torch.gcd, two, (torch.int64,), falls_back=True),
]  # fmt: skip
