"""Writes at indices given by tensors: index_put, index_fill and put.

    x.index_put((i, j), v)              x[i[p], j[p]] = v[p], one scatter node over the elements of v
    x.index_put((mask,), v)             every element asks whether it is chosen and, if so, its rank among the chosen

A mask beside other indices is left to PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.ir.index import ZERO, Index
from compiler.ir.ops import ops
from compiler.lowering.advanced_index import TRUTHS, AdvancedIndex, index_in
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of
from compiler.lowering.loop_builder import Update
from compiler.lowering.masks import ranks, truth
from compiler.lowering.registry import decomposes, lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast

aten = torch.ops.aten


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    build: Builder, x: TensorValue, indices: Sequence[TensorValue | None], values: TensorValue,
    accumulate: bool = False,
) -> TensorValue:  # fmt: skip
    """The values broadcast to what reading at the indices would give."""
    given = [index for index in indices if index is not None]
    if any(index.dtype in TRUTHS for index in given):
        if len(given) > 1:
            raise CannotLower("a mask stands beside other indices")
        at = next(dim for dim, index in enumerate(indices) if index is not None)
        return put_where(build, x, at, given[0], values, accumulate)
    chosen = AdvancedIndex.of(x, indices)
    source = broadcast(values, chosen.shape)

    def update(position: Position) -> Update:
        conditions = []

        def index_of(dim: int, value: Any) -> Index:
            index, is_inside = index_in(value, x.shape[dim])
            conditions.append(is_inside)
            return index

        target = chosen.position_in(position, index_of)
        return target, source.load(position), all_of(conditions)

    return scatter_into(build, x, chosen.shape, "add" if accumulate else "set", update)


def put_where(
    build: Builder, x: TensorValue, at: int, mask: TensorValue, values: TensorValue, accumulate: bool
) -> TensorValue:
    """One mask over the dimensions from `at` on. Every element asks whether it is chosen, so that the node is pointwise
    and fuses with what follows; where several values are given, the mask is counted through first."""
    end = at + mask.rank
    # The values broadcast to (..., true elements, ...); those that stand for all elements are not counted.
    rank_of_result = x.rank - mask.rank + 1
    aligned = broadcast(values, (*(1,) * max(0, rank_of_result - values.rank), *values.shape))
    count = aligned.shape[at]
    rank_of = ranks(build, mask) if count != 1 else None
    whole = broadcast(aligned, (*x.shape[:at], count, *x.shape[end:]))

    def element(position: Position) -> Any:
        inner, old = position[at:end], x.load(position)
        chosen, index = truth(mask, inner), ZERO
        if rank_of is not None:
            index, is_given = index_in(rank_of.load(inner), count)
            chosen = chosen & is_given
        new = whole.load((*position[:at], index, *position[end:]))
        return ops.where(chosen, old + new if accumulate else new, old)

    return build.pointwise(x.shape, x.dtype, element if values.numel != 0 else x.load)


@decomposes(aten.index_fill)
def index_fill(x: Tensor, dim: int, index: Tensor, value: Tensor | float) -> Tensor:
    """Whole slices, at the positions of an index of one dimension or none, get one value."""
    new = value.to(x.dtype, copy=True) if isinstance(value, Tensor) else x.new_full((), value)
    if not x.dim():
        return new if index.numel() else x.clone()
    indices = [None] * (dim % x.dim()) + [index]
    return aten.index_put.default(x, indices, new)  # type: ignore[no-any-return]


@decomposes(aten.put)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements and sources are counted in row-major order, and the result lies as the tensor does."""
    new = x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate).view(x.shape)
    return new if x.is_contiguous() else aten.copy.default(torch.empty_like(x), new)
