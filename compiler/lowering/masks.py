"""Masks that choose as many elements as they are true: the rank of each true element, and where those elements lie.

    mask    0 1 1 0 1                          x.masked_scatter(mask, s):  where(mask, s[rank], x)
    rank    . 0 1 . 2      a running sum       index_put with a mask and values: the same
    indices 1 2 4 5 5      a scatter           a mask beside other indices: x[indices, j]

What has a number of elements that only the mask tells (`masked_select`, `nonzero`) has no shape before it runs and is a
call of PyTorch's own; here is what has a shape without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.ir.ops import ops
from compiler.ir.positions import flatten, unflatten
from compiler.ir.size import Integer
from compiler.lowering.advanced_index import index_in
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import Position, TensorValue, broadcast, constant

aten = torch.ops.aten


def truth(mask: TensorValue, position: Position) -> Any:
    """Whether an element is not zero."""
    return mask.load(position).to(torch.bool)


def flattened(x: TensorValue) -> TensorValue:
    """The elements in row-major order."""
    return x.view((x.numel,), lambda position: unflatten(position[0], x.shape))


def ranks(build: Builder, mask: TensorValue) -> TensorValue:
    """For every true element the number of true elements before it in row-major order: int64, of the mask's shape."""
    if not mask.rank or not mask.numel:
        return constant(0, mask.shape, torch.int64)
    flat = flattened(mask)

    def element(position: Position) -> Any:
        so_far = ops.scan("sum", truth(flat, position).to(torch.int64))
        return so_far - 1

    counted = build.scan(flat.shape, torch.int64, 0, element, label="ranks")
    return counted.view(mask.shape, lambda position: (flatten(position, mask.shape),))


@lowers(aten.masked_scatter.default)
def masked_scatter(build: Builder, x: TensorValue, mask: TensorValue, source: TensorValue) -> TensorValue:
    shape, given = build.eager.shape, flattened(source)
    x, mask = broadcast(x, shape), broadcast(mask, shape)
    if not source.numel:
        return build.pointwise(shape, x.dtype, x.load)
    rank_of = ranks(build, mask)

    def element(position: Position) -> Any:
        rank, is_given = index_in(rank_of.load(position), source.numel)
        chosen = truth(mask, position) & is_given
        return ops.where(chosen, given.load((rank,), chosen), x.load(position))

    return build.pointwise(shape, x.dtype, element)


@lowers(aten.masked_scatter_backward.default)
def masked_scatter_backward(
    build: Builder, gradient: TensorValue, mask: TensorValue, sizes: Sequence[Integer]
) -> TensorValue:
    """The gradient of the source: what was written gets that of the element that it was written to, the rest none."""
    shape, mask = tuple(sizes), broadcast(mask, gradient.shape)
    rank_of, zeros = ranks(build, mask), constant(0, shape, gradient.dtype)

    def update(position: Position) -> Update:
        rank, is_inside = index_in(rank_of.load(position), zeros.numel)
        chosen = truth(mask, position) & is_inside
        return unflatten(rank, shape), gradient.load(position), chosen

    return scatter_into(build, zeros, mask.shape, "set", update)
