"""The table's part of masks that choose as many elements as they are true."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.lowering.operators import Operator, values
from tests.lowering.operators_scatter import places

BOOL = torch.bool


def mask_of(*shape: int, seed: int = 2) -> Tensor:
    return values(BOOL, *shape, seed=seed)


def chosen(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, mask, one value for each true place)."""
    found = []
    for x in (values(dtype, 5, 4), values(dtype, 4, 3, 5).permute(2, 1, 0), values(dtype, 300), values(dtype, 2, 1)):
        mask = mask_of(*x.shape)
        found.append((x, mask, values(dtype, int(mask.sum()), seed=1)))
    return [*found, (values(dtype, 0, 3), mask_of(0, 3), values(dtype, 0))]


def chosen_rows(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, mask of its second dimension, slices)."""
    make, mask = partial(values, dtype), mask_of(7)
    count = int(mask.sum())
    return [(make(3, 7, 2), mask, make(3, count, 2, seed=1)), (make(3, 7, 2), mask, make(count, 1, seed=1))]


def crossed(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, mask of two dimensions, an index for each true place, values)."""
    mask = mask_of(4, 5)
    count = int(mask.sum())
    return [(values(dtype, 4, 5, 30, 2), mask, places(count, below=30) - 15, values(dtype, count, 2, seed=1))]


def scattered(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(target, mask, source): of equal shape, a mask and a target that broadcast, a source that is longer."""
    make = partial(values, dtype)
    return [
        (make(5, 4), mask_of(5, 4), make(20, seed=1)),
        (make(5, 4), mask_of(4), make(30, seed=1)),
        (make(4), mask_of(5, 4), make(5, 4, seed=1).t()),
        (make(3, 7, 6).transpose(0, 2), mask_of(6, 7, 3), make(2, 70, seed=1)),
        (make(0, 3), mask_of(0, 3), make(4, seed=1)),
    ]


def _scatter_backward(gradient: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(gradient.shape, mask.shape)
    return torch.ops.aten.masked_scatter_backward(gradient.expand(shape), mask, source.shape)


OPERATORS = [
    Operator("index_put.mask.values", lambda x, m, s: x.index_put((m,), s), chosen),
    Operator("index_put.mask.accumulate", lambda x, m, s: x.index_put((m,), s, accumulate=True), chosen),
    Operator("index_put.mask.slices", lambda x, m, s: torch.ops.aten.index_put(x, [None, m], s), chosen_rows),
    Operator("index_put.mask.of_bytes", lambda x, m, s: x.index_put((m.byte(),), s), lambda d: chosen(d)[:1]),
    Operator("index_put.mask.beside", lambda x, m, i, s: x.index_put((m, i), s), crossed, (torch.float32,), True),
    Operator("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), scattered),
    Operator("masked_scatter.gradient", _scatter_backward, scattered),
]  # fmt: skip
