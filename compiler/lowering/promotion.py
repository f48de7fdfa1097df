"""Elementwise operators as eager types them: operands broadcast and promoted, results converted.

`elementwise` is how nearly every pointwise lowering is written: it gives the function of one element its operands in
the dtype that eager computes in (float32 for float16 and bfloat16), and stores in the dtype that eager returns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from compiler.ir.formulas import Real
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer, Size
from compiler.lowering.builder import Builder
from compiler.lowering.registry import Lowering, lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast, constant

Operand = Any  # a TensorValue or a Python number
Kind = ELEMENTWISE_TYPE_PROMOTION_KIND


def common_dtype(x: Operand, y: Operand) -> torch.dtype:
    """The dtype that eager converts the operands of a comparison to."""
    return torch.result_type(*(_stand_in(_what_counts(operand)) for operand in (x, y)))


def in_common_dtype(*operands: Operand) -> list[TensorValue]:
    """Operands of which a number is a tensor of the common dtype. Eager compares, and takes remainders, in that dtype
    itself: a number beside a float16 tensor is rounded to float16 first."""
    dtype = common_dtype(*operands)
    return [operand if isinstance(operand, TensorValue) else constant(operand, (), dtype) for operand in operands]


def dtypes_of(kind: Kind, *operands: Operand) -> tuple[torch.dtype, torch.dtype]:
    """The dtype to compute in and the dtype of the result."""
    return _dtypes_of(kind, torch.get_default_dtype(), *map(_what_counts, operands))


def _what_counts(operand: Operand) -> tuple[torch.dtype, int] | type:
    """All that promotion asks of an operand: the dtype and the rank of a tensor, the type of a number."""
    if isinstance(operand, TensorValue):
        return operand.dtype, operand.rank
    if isinstance(operand, Real):
        return float
    return int if isinstance(operand, Size) else type(operand)


# Layers repeat each other, and torch's answer takes a tensor for each operand.
@cache
def _dtypes_of(
    kind: Kind, _default: torch.dtype, *operands: tuple[torch.dtype, int] | type
) -> tuple[torch.dtype, torch.dtype]:
    compute, result = elementwise_dtypes(*map(_stand_in, operands), type_promotion_kind=kind)
    return compute_dtype(compute), result


def _stand_in(counts: tuple[torch.dtype, int] | type) -> Any:
    """What PyTorch's promotion rules look at: a number, or an empty tensor of the same dtype and rank."""
    if isinstance(counts, type):
        return counts()
    dtype, rank = counts
    return torch.empty((1,) * rank, dtype=dtype, device="meta")


def broadcast_shapes(*operands: Operand) -> tuple[Integer, ...]:
    """The shape of an elementwise result: of the sizes of each dimension, the one that is not 1.

    Eager mode has accepted the operands, so two different formulas are of one value: a guard says so."""
    shapes = [operand.shape for operand in operands if isinstance(operand, TensorValue)]
    rank = max(map(len, shapes), default=0)
    result: list[Integer] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        result.append(min(sizes, key=str) if sizes else 1)
    return tuple(result)


def element_of(operand: Operand, shape: tuple[Integer, ...], position: Position, dtype: torch.dtype) -> Any:
    """One element of an operand that takes part in a result of `shape`, converted to `dtype`."""
    if isinstance(operand, TensorValue):
        return broadcast(operand, shape).load(position).to(dtype)
    if isinstance(operand, complex):
        raise CannotLower("loops do not compute with complex numbers")
    return ops.constant(operand, dtype)


def elementwise(build: Builder, kind: Kind, function: Callable[..., Any], *operands: Operand) -> TensorValue:
    """One node that applies `function` to the elements of the operands."""
    compute, result = dtypes_of(kind, *operands)
    shape = broadcast_shapes(*operands)

    def element(position: Position) -> Any:
        return function(*(element_of(operand, shape, position, compute) for operand in operands))

    return build.pointwise(shape, result, element)


def lowers_elements(
    kind: Kind, op: Callable[..., Any], *targets: Any, on_bool: Callable[..., Any] | None = None,
    on_integers: Callable[..., Any] | None = None,
) -> Lowering:  # fmt: skip
    """Register `op` of the elements of the operands, or another function where eager computes in bool or in integers
    (what is given for these is for bools too where nothing else is)."""

    @lowers(*targets)
    def lowering(build: Builder, *operands: Operand) -> TensorValue:
        dtype = dtypes_of(kind, *operands)[0]
        chosen = None if dtype.is_floating_point else on_integers
        if dtype == torch.bool and on_bool is not None:
            chosen = on_bool
        return elementwise(build, kind, chosen or op, *operands)

    return lowering
