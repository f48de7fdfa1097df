"""The table's part of histograms, and of repetitions as often as a tensor says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

WIDE = (torch.float32, torch.float64)
EDGES = [-2.0, -1.0, -0.75, 0.5, 2.5]


def _numbers(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """Numbers with some that lie on edges, one that is no number, equal ones, and none."""
    spread = values(dtype, 37, 7, low=-3, high=3)
    spread[0, :3] = torch.tensor([-1.0, 0.5, 2.5])
    return [(spread,), (spread.t()[::2],), (torch.full((6,), 1.5, dtype=dtype),), (values(dtype, 0, 2),)]


def _histogram(**keywords: Any) -> Callable[[Tensor], Any]:
    is_weighted = keywords.pop("is_weighted", False)

    def function(x: Tensor) -> Any:
        return torch.histogram(x, weight=x.square() if is_weighted else None, **keywords)

    return function


def _between_edges(x: Tensor) -> Any:
    return torch.histogram(x, torch.tensor(EDGES, dtype=x.dtype), density=True)


def _with_nan(x: Tensor) -> Any:
    return torch.histc(torch.where(x > 1, torch.nan, x), 9, -2, 2)


def _of_columns(x: Tensor, **keywords: Any) -> Any:
    return torch.histogramdd(x[..., :2], [3, 5], **keywords)


def _columns_between(x: Tensor) -> Any:
    edges = torch.tensor(EDGES, dtype=x.dtype)
    return torch.histogramdd(x[..., :2], [edges, edges[1:]], weight=x[..., 0].abs())


def _matrices(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return _numbers(dtype)[:2]


HISTOGRAMS = [
    Operator("histc", lambda x: torch.histc(x, 11), _numbers, FLOATS),
    Operator("histc.range", _with_nan, _numbers, FLOATS),
    Operator("histogram", _histogram(bins=11), _numbers, WIDE),
    Operator("histogram.range", _histogram(bins=8, range=(-1.5, 2.5)), _numbers, WIDE),
    Operator("histogram.density", _histogram(bins=4, is_weighted=True, density=True), _matrices, WIDE),
    Operator("histogram.edges", _between_edges, _matrices, WIDE),
    Operator("histogramdd", _of_columns, _matrices, WIDE),
    Operator("histogramdd.range", lambda x: _of_columns(x, range=[-1.5, 1.5, -2, 3], density=True), _matrices, WIDE),
    Operator("histogramdd.edges", _columns_between, _matrices, WIDE),
]


def _repeats(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    often = torch.tensor([2, 0, 3, 1, 0])
    return [(values(dtype, 5, 4), often), (values(dtype, 4, 5).t(), often.int())]


REPETITIONS = [
    Operator("repeat_interleave.tensor", lambda x, r: x.repeat_interleave(r, 0, output_size=6), _repeats),
    Operator("repeat_interleave.places", lambda x, r: torch.repeat_interleave(r, output_size=6), _repeats),
]

OPERATORS = [*HISTOGRAMS, *REPETITIONS]
