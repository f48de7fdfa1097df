"""The table's rows of sampling: images that are read at the places of a grid, in every way that ATen knows."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

aten = torch.ops.aten

#: Ways to interpolate and to treat what lies outside, by ATen's numbers.
MODES = {"linear": 0, "nearest": 1, "cubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _sampled(dtype: torch.dtype, rank: int) -> list[tuple[Tensor, ...]]:
    """Images and grids that reach beyond them on both sides: one of several elements an axis, one of one."""
    grid = values(dtype, 2, *[3, 2, 2][:rank], rank, low=-1.6, high=1.6)
    return [(values(dtype, 2, 2, *[3, 4, 2][:rank]), grid), (values(dtype, 2, 2, *[1] * rank), grid)]


def _with_gradients(dtype: torch.dtype, rank: int) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, *x.shape[:2], *grid.shape[1:-1], seed=1), x, grid) for x, grid in _sampled(dtype, rank)]


def _forward(mode: str, padding: str, align: bool) -> Operator:
    def function(x: Tensor, grid: Tensor) -> Tensor:
        found: Tensor = aten.grid_sampler_3d(x, grid, MODES[mode], PADDINGS[padding], align)
        return found

    name = f"grid_sampler_3d.{mode}.{padding}{'.corners' if align else ''}"
    return Operator(name, function, partial(_sampled, rank=3), (torch.float32,))


def _backward(rank: int, mode: str, padding: str, align: bool, wants_image: bool = True) -> Operator:
    def function(gradient: Tensor, x: Tensor, grid: Tensor) -> list[Tensor]:
        of_image, of_grid = getattr(aten, f"grid_sampler_{rank}d_backward")(
            gradient, x, grid, MODES[mode], PADDINGS[padding], align, [wants_image, True]
        )
        return [of_image, of_grid] if wants_image else [of_grid]

    parts = [mode, padding, *(["corners"] if align else []), *([] if wants_image else ["grid"])]
    name = ".".join([f"grid_sampler_{rank}d.backward", *parts])
    return Operator(name, function, partial(_with_gradients, rank=rank), (torch.float32,))


def _ways(*modes: str) -> list[Any]:
    return list(product(modes, PADDINGS, (False, True)))


OPERATORS = [
    *(_forward(*way) for way in _ways("linear")),
    _forward("nearest", "zeros", False),
    _forward("nearest", "reflection", True),
    *(_backward(2, *way) for way in _ways("linear", "cubic")),
    *(_backward(3, *way) for way in _ways("linear")[::2]),
    _backward(2, "nearest", "border", False),
    _backward(3, "nearest", "zeros", True),
    _backward(2, "linear", "zeros", False, wants_image=False),
    Operator(
        "grid_sampler_2d.backward.half",
        lambda g, x, grid: aten.grid_sampler_2d_backward(g, x, grid, 0, 0, False, [True, True]),
        partial(_with_gradients, rank=2),
        FLOATS,
    ),
]
