"""Scatters that combine: scatter_add, scatter_reduce and index_reduce, by sum, product, mean, smallest and largest.

total[i] = x[i] if include_self else the value that changes nothing
total[index[p]] = total[index[p]] combined with source[p]
"""

from __future__ import annotations

from math import inf
from typing import Any

import torch
from torch import Tensor

from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import decomposes, lowers
from compiler.lowering.scatter import (
    COLLECTED_IN,
    Updating,
    along,
    at_few_indices,
    indices_per_row,
    reader,
    scatter_into,
    with_rank_of,
)
from compiler.lowering.values import Position, TensorValue, constant
from compiler.lowering.views import wrap

aten = torch.ops.aten

#: Modes of a scatter by what PyTorch calls the reductions.
MODES = {"sum": "add", "mean": "add", "prod": "mul", "amin": "min", "amax": "max"}


@lowers(aten.scatter_add.default)
def scatter_add(build: Builder, x: TensorValue, dim: int, index: TensorValue, src: TensorValue) -> TensorValue:
    """Into rows of a constant at a few indices each, the gradient of `gather`, the other way around: every element asks
    whether it is one of them, so that the node is pointwise and fuses with what follows. A tensor that is read keeps
    the scatter, which may update it where it lies (`in_place.py`)."""
    index, src = with_rank_of(x, index), with_rank_of(x, src)
    at = wrap(dim, x.rank) if x.rank else 0
    count = indices_per_row(x, at, index)
    if count is None or x.buffer is not None or not x.dtype.is_floating_point:
        return scatter_reduce(build, x, dim, index, src, "sum")
    return build.pointwise(x.shape, x.dtype, at_few_indices(x, at, index, count, src.load, ops.add))


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any, *, reduce: str
) -> TensorValue:
    return scatter_reduce(build, x, dim, index, value, {"add": "sum", "multiply": "prod"}[reduce])


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, src: Any, reduce: str, *, include_self: bool = True
) -> TensorValue:
    index = with_rank_of(x, index)
    return combined(build, x, index.shape, along(x, dim, index, reader(src, x)), reduce, include_self)


@decomposes(aten.index_reduce)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Whole slices, at the positions of an index of one dimension or none."""
    if not x.dim():
        return x.scatter_reduce(0, index.reshape(()), source.reshape(()), reduce, include_self=include_self)
    shape = [index.numel() if axis == dim % x.dim() else 1 for axis in range(x.dim())]
    source = source.reshape([1] * (x.dim() - source.dim()) + list(source.shape))
    indices = index.reshape(shape).expand(source.shape)
    return x.scatter_reduce(dim, indices, source, reduce, include_self=include_self)


def combined(
    build: Builder, x: TensorValue, sources: tuple[Integer, ...], update: Updating, reduce: str, include_self: bool
) -> TensorValue:
    """A copy of `x` whose elements are reduced with what `update` brings; those that nothing meets stay as they are."""
    mode, held = MODES[reduce], COLLECTED_IN.get(x.dtype, x.dtype)

    def bringing(number: int | float, dtype: torch.dtype) -> Updating:
        def constant_update(position: Position) -> Update:
            target, _, mask = update(position)
            return target, ops.constant(number, dtype), mask

        return constant_update

    before = None if include_self else bringing(identity(mode, held), held)
    if reduce != "mean" or 0 in sources or 0 in x.shape:
        return scatter_into(build, x, sources, mode, update, before=before)
    # A sum of half types stays wide until it is divided; one of small whole numbers wraps around before, as eager's.
    total = scatter_into(build, x, sources, mode, update, before=before, dtype=held, label="sum")
    start = constant(int(include_self), x.shape, torch.int64)
    count = scatter_into(build, start, sources, mode, bringing(1, torch.int64), label="count")
    summed = compute_dtype(x.dtype)
    return build.pointwise(
        x.shape, x.dtype, lambda position: quotient(total.load(position).to(summed), count.load(position))
    )


def identity(mode: str, dtype: torch.dtype) -> int | float:
    """What changes nothing when it is combined with another value."""
    if mode in ("add", "mul"):
        return 0 if mode == "add" else 1
    if dtype.is_floating_point:
        return inf if mode == "min" else -inf
    limits = torch.iinfo(dtype)
    return limits.max if mode == "min" else limits.min


def quotient(total: Any, count: Any) -> Any:
    """A mean, of nothing but the element itself where it has no count; whole numbers round down, as eager's do."""
    count = ops.maximum(count, 1).to(total.dtype)
    return total / count if total.dtype.is_floating_point else ops.floordiv(total, count)
