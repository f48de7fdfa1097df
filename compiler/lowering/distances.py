"""Distances between rows of matrices, and products of three tensors that are summed at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import broadcast_shapes
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast
from compiler.lowering.views import unsqueeze

aten = torch.ops.aten


@lowers(aten._cdist_forward)
def cdist(build: Builder, x: TensorValue, y: TensorValue, p: float, compute_mode: int | None) -> TensorValue:
    """The p-norm of x[..., i, :] - y[..., j, :] for every i and j."""
    compute = compute_dtype(x.dtype)
    batch = build.eager.shape[:-2]
    x, y = broadcast(x, (*batch, *x.shape[-2:])), broadcast(y, (*batch, *y.shape[-2:]))
    if not x.shape[-1]:
        return build.pointwise(build.eager.shape, x.dtype, lambda position: ops.constant(0, compute))

    def element(position: Position, reduced: Position) -> Any:
        *front, row, column = position
        return _norm(ops.sub(x.load((*front, row, *reduced)), y.load((*front, column, *reduced))), p, compute)

    return build.reduction((*batch, x.shape[-2], y.shape[-2]), x.dtype, (x.shape[-1],), element)


def _norm(difference: Any, p: float, compute: torch.dtype) -> Any:
    """The p-norm of the differences, reduced."""
    distance = ops.abs(difference)
    if p == 0:
        return ops.reduce("sum", ops.to_dtype(ops.ne(distance, ops.constant(0, compute)), compute))
    if p == inf:
        return ops.reduce("max", distance)
    if p == 2:
        return ops.sqrt(ops.reduce("sum", ops.square(distance)))
    if p == 1:
        return ops.reduce("sum", distance)
    total = ops.reduce("sum", ops.pow(distance, ops.constant(p, compute)))
    return ops.pow(total, ops.constant(1 / p, compute))


@lowers(aten._cdist_backward)
def cdist_backward(
    build: Builder, gradient: TensorValue, x: TensorValue, y: TensorValue, p: float, distances: TensorValue
) -> TensorValue:
    """The gradient of x: every row sums over all rows of y, and over the batches that x was broadcast to (ATen leaves
    the latter to autograd, but its shape function does not say so)."""
    compute = compute_dtype(x.dtype)
    batch = gradient.shape[:-2]
    shape = build.eager.shape
    lead = len(batch) - len(shape[:-2])
    summed = [place for place in range(len(batch)) if place < lead or shape[place - lead] != batch[place]]
    x, y = broadcast(x, (*batch, *x.shape[-2:])), broadcast(y, (*batch, *y.shape[-2:]))

    def element(position: Position, reduced: Position) -> Any:
        *kept, row, feature = position
        *rest, other = reduced
        places = dict(zip(summed, rest, strict=True))
        front = tuple(places[place] if place in places else kept[place - lead] for place in range(len(batch)))
        difference = ops.sub(x.load((*front, row, feature)), y.load((*front, other, feature)))
        given, distance = gradient.load((*front, row, other)), distances.load((*front, row, other))
        return ops.reduce("sum", _slope(difference, given, distance, p, compute))

    return build.reduction(shape, x.dtype, (*(batch[place] for place in summed), y.shape[-2]), element)


def _slope(difference: Any, gradient: Any, distance: Any, p: float, compute: torch.dtype) -> Any:
    """How the distance grows with one coordinate, times the gradient; 0 where it has no slope, as ATen decides."""
    zero = ops.constant(0, compute)
    sign, size = ops.sign(difference), ops.abs(difference)
    if p == 0:
        return zero
    if p == 1:
        return ops.mul(gradient, sign)
    if p == inf:
        return ops.where(ops.eq(size, distance), ops.mul(gradient, sign), zero)
    if p == 2:
        slope = ops.truediv(ops.mul(gradient, difference), distance)
    elif p < 2:
        slope = ops.mul(ops.mul(sign, ops.pow(size, ops.constant(p - 1, compute))), gradient)
        slope = ops.truediv(slope, ops.pow(distance, ops.constant(p - 1, compute)))
        return ops.where(ops.logical_or(ops.eq(distance, zero), ops.eq(size, zero)), zero, slope)
    else:
        slope = ops.mul(ops.mul(difference, ops.pow(size, ops.constant(p - 2, compute))), gradient)
        slope = ops.truediv(slope, ops.pow(distance, ops.constant(p - 1, compute)))
    return ops.where(ops.eq(distance, zero), zero, slope)


# --- between all rows of one matrix


@lowers(aten._pdist_forward)
def pdist(build: Builder, x: TensorValue, p: float = 2.0) -> TensorValue:
    """The p-norm of x[i] - x[j] for every i < j, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    compute, rows = compute_dtype(x.dtype), x.shape[0]
    shape = build.eager.shape
    if 0 in (*shape, x.shape[1]):
        return build.pointwise(shape, x.dtype, lambda position: ops.constant(0, compute))

    def element(position: Position, reduced: Position) -> Any:
        first, second = _pair(ops.index_value(position[0]), rows)
        return _norm(ops.sub(x.load((first, *reduced)), x.load((second, *reduced))), p, compute)

    return build.reduction(shape, x.dtype, (x.shape[1],), element)


def _pair(place: Any, rows: Integer) -> tuple[Index, Index]:
    """The rows of the pair at `place`: the inverse of `_place_of_pair`, by the root of a quadratic in float64."""
    float64, half = torch.float64, ops.constant(0.5, torch.float64)
    middle = ops.sub(ops.to_dtype(ops.constant(rows, torch.int64), float64), half)
    twice = ops.add(ops.to_dtype(place, float64), ops.to_dtype(place, float64))
    root = ops.sqrt(ops.sub(ops.square(middle), ops.add(twice, ops.constant(1.0, float64))))
    first = ops.to_dtype(ops.sub(middle, root), torch.int64)
    before = ops.sub(_pairs_before(first, rows), ops.add(first, ops.constant(1, torch.int64)))
    row: Index = ops.indirect(first, rows)
    column: Index = ops.indirect(ops.sub(place, before), rows)
    return row, column


def _pairs_before(row: Any, rows: Integer) -> Any:
    """How many pairs have an earlier first row."""
    squared = ops.mul(row, ops.add(row, ops.constant(1, torch.int64)))
    return ops.sub(
        ops.mul(row, ops.constant(rows, torch.int64)), ops.truncdiv(squared, ops.constant(2, torch.int64))
    )  # fmt: skip


@lowers(aten._pdist_backward)
def pdist_backward(
    build: Builder, gradient: TensorValue, x: TensorValue, p: float, distances: TensorValue
) -> TensorValue:
    """The gradient of x: every row sums over all others."""
    compute, rows = compute_dtype(x.dtype), x.shape[0]
    pairs = distances.numel
    if 0 in (pairs, *x.shape):
        return build.pointwise(x.shape, x.dtype, lambda position: ops.constant(0, compute))

    def element(position: Position, reduced: Position) -> Any:
        row, feature = position
        this, other = ops.index_value(row), ops.index_value(reduced[0])
        first, second = ops.minimum(this, other), ops.maximum(this, other)
        beside = ops.sub(second, ops.add(first, ops.constant(1, torch.int64)))
        place = ops.add(_pairs_before(first, rows), beside)
        # A row is in no pair with itself.
        is_pair = ops.ne(this, other)
        pair: Index = ops.indirect(ops.where(is_pair, place, ops.constant(0, torch.int64)), pairs)
        difference = ops.sub(x.load(position), x.load((reduced[0], feature)))
        slope = _slope(difference, gradient.load((pair,)), distances.load((pair,)), p, compute)
        return ops.reduce("sum", ops.where(is_pair, slope, ops.constant(0, compute)))

    return build.reduction(x.shape, x.dtype, (rows,), element)


# --- products of three


@lowers(aten._trilinear)
def trilinear(
    build: Builder, a: TensorValue, b: TensorValue, c: TensorValue, expand1: Sequence[int], expand2: Sequence[int],
    expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1,
) -> TensorValue:  # fmt: skip
    """The sum over `sumdim` of the product of the three, each with new dimensions where `expand` says."""
    for place in range(3):
        for dim in sorted((expand1, expand2, expand3)[place]):
            a, b, c = (unsqueeze(build, x, dim) if at == place else x for at, x in enumerate((a, b, c)))
    shape = broadcast_shapes(a, b, c)
    factors = [broadcast(x, shape) for x in (a, b, c)]
    kept = [place for place in range(len(shape)) if place not in sumdim]
    if not sumdim:
        raise CannotLower("it sums over no dimension")

    def element(position: Position, reduced: Position) -> Any:
        places = dict(zip([*kept, *sumdim], [*position, *reduced], strict=True))
        first, second, third = (x.load(tuple(places[at] for at in range(len(shape)))) for x in factors)
        return ops.reduce("sum", ops.mul(ops.mul(first, second), third))

    return build.reduction(
        tuple(shape[place] for place in kept), a.dtype, tuple(shape[place] for place in sumdim), element
    )
