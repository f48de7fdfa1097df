"""Distances between rows of matrices, and products of three tensors that are summed at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import torch

from compiler.ir.ops import compute_dtype, ops
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
