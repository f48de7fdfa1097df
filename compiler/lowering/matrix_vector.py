"""Products in which a size is one: a vector is multiplied, or makes a matrix of another vector.

mv(a, b)     for i: result[i] = sum of a[i, k] * b[k] over k        fuses with what computes a, b or reads the result
dot(a, b)    sum of a[k] * b[k] over k
mm(a, b)     the same where a has one row or b one column; where both share one element, result[i, j] = a[i] * b[j]

A library gains by using what it has loaded again. Here each element of the matrix is used once: memory is what
everybody waits for, and a sum is fused with what stands around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering import library  # noqa: F401  (whose calls are taken over here)
from compiler.lowering.builder import Builder
from compiler.lowering.registry import LOWERINGS, Lowering, lowers
from compiler.lowering.values import Position, TensorValue, broadcast

aten = torch.ops.aten

#: From a position of the result and one along the sum to the position in an operand.
PositionOf = Callable[[Position, Position], Position]


def _sum(
    build: Builder, shape: tuple[Integer, ...], a: TensorValue, b: TensorValue, left: PositionOf, right: PositionOf,
    finish: Callable[[Position, Any], Any] = lambda _, total: total,
) -> TensorValue:  # fmt: skip
    """The sums of products over the last dimension of `a`, in float32 for half types, and what comes of them."""
    held = compute_dtype(a.dtype)

    def element(position: Position, inner: Position) -> Any:
        factors = a.load(left(position, inner)), b.load(right(position, inner))
        return finish(position, ops.reduce("sum", ops.mul(*(factor.to(held) for factor in factors))))

    return build.reduction(shape, a.dtype, a.shape[-1:], element)


def _is_sum(a: TensorValue, *sizes: Integer) -> bool:
    """Whether a product of these sizes is done as a sum."""
    return 1 in sizes and 0 not in sizes and a.dtype.is_floating_point and a.dtype.itemsize > 1


def _instead_of(target: Any) -> Callable[[Callable[..., TensorValue | None]], Lowering]:
    """Register what lowers a product with a vector; where it gives None, the library is called as before."""
    call = LOWERINGS[target]

    def register(lowering: Callable[..., TensorValue | None]) -> Lowering:
        def product(build: Builder, *args: Any, **kwargs: Any) -> Any:
            found = lowering(build, *args, **kwargs)
            return call(build, *args, **kwargs) if found is None else found

        return lowers(target)(product)

    return register


@_instead_of(aten.mv.default)
def mv(build: Builder, matrix: TensorValue, vector: TensorValue) -> TensorValue | None:
    if not _is_sum(matrix, 1, *matrix.shape):
        return None
    return _sum(build, matrix.shape[:1], matrix, vector, lambda at, k: (*at, *k), lambda at, k: k)


def _dot(build: Builder, a: TensorValue, b: TensorValue) -> TensorValue | None:
    return _sum(build, (), a, b, lambda at, k: k, lambda at, k: k) if _is_sum(a, 1, *a.shape) else None


_instead_of(aten.dot.default)(_dot)
_instead_of(aten.vdot.default)(_dot)


def _matrices(
    build: Builder, a: TensorValue, b: TensorValue, finish: Callable[[Position, Any], Any] = lambda _, total: total
) -> TensorValue | None:
    """A product of matrices, or of batches of them."""
    shape = (*a.shape[:-1], b.shape[-1])
    if not _is_sum(a, *shape[-2:], a.shape[-1]) or 0 in shape:
        return None
    return _sum(build, shape, a, b, lambda at, k: (*at[:-1], *k), lambda at, k: (*at[:-2], *k, at[-1]), finish)


_instead_of(aten.mm.default)(_matrices)
_instead_of(aten.bmm.default)(_matrices)


@_instead_of(aten.addmm.default)
def addmm(
    build: Builder, bias: TensorValue, a: TensorValue, b: TensorValue, *, beta: float = 1, alpha: float = 1
) -> TensorValue | None:
    held, added = compute_dtype(a.dtype), broadcast(bias, (a.shape[0], b.shape[1]))

    def with_bias(position: Position, total: Any) -> Any:
        total = total if alpha == 1 else total * alpha
        start = added.load(position).to(held)
        return (start if beta == 1 else start * beta) + total

    return None if beta == 0 else _matrices(build, a, b, with_bias)
