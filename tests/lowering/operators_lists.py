"""The table's rows of sorted rows, distances, and lists of tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

aten = torch.ops.aten
NUMBERS = (*FLOATS, torch.int64)


def _rows(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    wanted = values(dtype, 4, 9, seed=1)
    if dtype.is_floating_point:
        wanted[0, :3] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    row = values(dtype, 4, 13).sort(-1).values
    return [(row, wanted), (values(dtype, 4, 1), wanted), (values(dtype, 4, 0), wanted)]


def _repeats(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    often = torch.tensor([2, 0, 3, 1, 0])
    return [(values(dtype, 5, 4), often), (values(dtype, 4, 5).t(), often.int())]


SEARCHING = [
    Operator("searchsorted", torch.searchsorted, _rows, NUMBERS),
    Operator("searchsorted.right", lambda r, w: torch.searchsorted(r, w, side="right", out_int32=True), _rows, NUMBERS),
    Operator("bucketize", lambda r, w: torch.bucketize(w, r[0]), _rows, NUMBERS),
    Operator("bucketize.right", lambda r, w: torch.bucketize(w, r[0], right=True), _rows, NUMBERS),
    Operator("repeat_interleave.tensor", lambda x, r: x.repeat_interleave(r, 0, output_size=6), _repeats),
    Operator("repeat_interleave.places", lambda x, r: torch.repeat_interleave(r, output_size=6), _repeats),
]


def _points(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [
        (values(dtype, 2, 4, 3), values(dtype, 2, 5, 3, seed=1)),
        (values(dtype, 1, 4, 3), values(dtype, 2, 5, 3, seed=1)),
        (values(dtype, 0, 4, 3), values(dtype, 1, 5, 3, seed=1)),
        (values(dtype, 4, 3), values(dtype, 2, 5, 3, seed=1)),
        (values(dtype, 4, 0), values(dtype, 5, 0)),
    ]


def _distances(x: Tensor, y: Tensor, p: float) -> Tensor:
    return torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist")


DISTANCES = [
    *(Operator(f"cdist.{p}", partial(_distances, p=p), _points, (torch.float32,)) for p in (0.0, 1.0, 1.5, 2.0, 3.0)),
    Operator("cdist.inf", partial(_distances, p=float("inf")), _points, (torch.float32,)),
    Operator(
        "bilinear_product",
        lambda x, y: torch.nn.functional.bilinear(x, y[..., :1, :].expand_as(x), torch.stack([x[0, 0].outer(x[0, 1])])),
        lambda d: _points(d)[:1],
        (torch.float32,),
    ),
]


def _two_lists(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [tuple(values(dtype, *shape, low=0.5, seed=seed) for seed in range(3) for shape in [(3, 5), (4,)])]


def _on_lists(name: str, count: int, *numbers: Any, **settings: Any) -> Operator:
    function = getattr(aten, f"_foreach_{name}")

    def call(*tensors: Tensor) -> Any:
        return function(*[list(tensors[place : place + 2]) for place in range(0, 2 * count, 2)], *numbers, **settings)

    suffix = ".list" if count > 1 else ".number" if numbers else ""
    return Operator(f"foreach.{name}{suffix}", call, _two_lists, (torch.float32,))


#: torch 2.11 has no `_foreach_clone`.
UNARY = [name for name in "abs neg sqrt rsqrt reciprocal sign exp clone".split() if hasattr(aten, f"_foreach_{name}")]

LISTS = [
    *(_on_lists(name, 1) for name in UNARY),
    *(_on_lists(name, 2) for name in "add sub mul div maximum minimum pow copy clamp_min clamp_max".split()),
    *(_on_lists(name, 1, 1.5) for name in "add sub mul div maximum minimum pow clamp_min clamp_max".split()),
    _on_lists("lerp", 2, 0.25),
    _on_lists("addcmul", 3, 0.5),
    _on_lists("addcdiv", 3, [0.5, 2.0]),
]

PARTS = [
    Operator(
        "diagonal_scatter",
        lambda x, y: torch.diagonal_scatter(x, y[0, :, :3], 1, 0, 2) - torch.diagonal_scatter(x, y[0, :, :2], -2, 2, 0),
        lambda d: [(values(d, 4, 4, 4), values(d, 4, 4, 4, seed=1))],
        NUMBERS,
    ),
]

OPERATORS = [*SEARCHING, *DISTANCES, *LISTS, *PARTS]
