"""The table's fourth part: scans along either side of a tensor, of every length that a kernel treats in its own way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, one, positive, special, values

NUMBERS = (*FLOATS, torch.int64, torch.bool)
#: Of long rows: in float64 the order of a sum shows, and there is nothing finer to judge it by.
LONG = (torch.float32, torch.bfloat16)


def rows(dtype: torch.dtype, low: float = -3.0, high: float = 3.0) -> list[tuple[Tensor, ...]]:
    """Matrices and more: short rows, a row beyond one block, other strides, one element, none."""
    make = partial(values, dtype, low=low, high=high)
    return [
        (make(3, 37),),
        (make(2, 5, 7).permute(2, 0, 1),),
        (make(6, 10)[::2, 1::3],),
        (make(1, 5).expand(3, 5),),
        (make(4, 1),),
        (make(0, 3),),
        (make(3, 0),),
        (make(),),
    ]


def near_one(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return rows(dtype, low=0.5, high=1.4)


def ties(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Equal values, and NaN and infinities where there are such: the latest of equals is the one that counts."""
    if not dtype.is_floating_point:
        return rows(dtype)
    edges = [1.0, 2.0, 2.0, -1.0, float("inf"), float("inf"), float("nan"), 3.0, float("nan"), -float("inf")]
    line = torch.tensor(edges, dtype=dtype)
    return [*rows(dtype), (torch.stack([line, line.flip(0), line.roll(3), torch.full_like(line, -float("inf"))]),)]


def cancelling(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Short rows whose sums are lost on the way in float32. Eager adds them in float64 on a CPU."""
    return [(torch.tensor([[2e7, 1.0, -2e7], [3e38, 3e38, -3e38]], dtype=dtype),)]


def _flat(function: Callable[[Tensor, int], Any]) -> Callable[[Tensor], list[Tensor]]:
    def both(x: Tensor) -> list[Tensor]:
        found = [function(x, -1), function(x, 0)]
        return [tensor for result in found for tensor in (result if isinstance(result, tuple) else (result,))]

    return both


OPERATORS = [
    Operator("cumsum", _flat(torch.cumsum), rows, NUMBERS),
    Operator("cumprod", _flat(torch.cumprod), near_one, NUMBERS),
    Operator("cummax", _flat(lambda x, d: tuple(torch.cummax(x, d))), ties, NUMBERS),
    Operator("cummin", _flat(lambda x, d: tuple(torch.cummin(x, d))), ties, NUMBERS),
    Operator("cumsum.dtype", lambda x: (x.cumsum(0, dtype=torch.float32), x.cumsum(-1, dtype=torch.int32)), rows),
    Operator("cumsum.cancelling", lambda x: x.cumsum(-1), cancelling, (torch.float32,)),
    Operator("cumsum.middle", lambda x: x.cumsum(1), lambda d: [(values(d, 3, 5, 7),), (values(d, 2, 3, 4, 5),)]),
    Operator("cumsum.flat", lambda x: x.flatten().cumsum(0), one),
    Operator("cumsum.between", lambda x: ((x * x).cumsum(-1) + 1).sqrt(), rows, FLOATS),
    Operator("cumsum.reversed", lambda x: x.flip(-1).cumsum(-1).flip(-1), rows, FLOATS),
    Operator("cumsum.normalised", lambda x: x.cumsum(-1) / x.sum(-1, keepdim=True), lambda d: positive(d)[:5], FLOATS),
    Operator("cumsum.block", lambda x: x.cumsum(-1), lambda d: [(values(d, 2, 9000, low=0),)], LONG),
    Operator("cummax.block", lambda x: list(x.cummax(-1)), lambda d: [(values(d, 2, 9000),)], (torch.float32,)),
    Operator("cumsum.columns", lambda x: x.cumsum(0), lambda d: [(values(d, 300, 40, low=0),)], LONG),
    Operator("cumulative_trapezoid", lambda x: torch.cumulative_trapezoid(x, dim=-1), lambda d: rows(d)[:4], FLOATS),
    Operator("cumsum.special", lambda x: x.cumsum(-1), special, FLOATS),
]
