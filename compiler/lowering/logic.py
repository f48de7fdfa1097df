"""Comparisons, choices, bits, and the operators that only change how a value is held."""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import (
    Kind,
    Operand,
    broadcast_shapes,
    common_dtype,
    dtypes_of,
    element_of,
    elementwise,
    in_common_dtype,
    lowers_elements,
)
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast, constant

aten = torch.ops.aten

SAME = Kind.DEFAULT
COMPARISONS = "eq ne lt le gt ge".split()
JOINED = "and or xor".split()
_NEAREST = {torch.float16: "nearest_float16", torch.bfloat16: "nearest_bfloat16"}
SHIFTS = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
          "__lshift__": "left_shift", "__rshift__": "right_shift"}  # fmt: skip


def _comparison(name: str) -> None:
    """A comparison asks for the last digit. So a value of a half type that was fused in is rounded as eager's is: else
    a maximum equals none of the values that it is of, and its gradient is divided by zero. An order beside a number
    needs no such care, nor does zero, nor what is compared with itself."""

    @lowers(getattr(aten, name))
    def lowering(build: Builder, x: Operand, y: Operand) -> TensorValue:
        dtype, numbers = common_dtype(x, y), in_common_dtype(x, y)
        shape = broadcast_shapes(*numbers)
        other = next((operand for operand in (x, y) if not isinstance(operand, TensorValue)), None)
        is_rounded = x is not y and (other is None or (name in ("eq", "ne") and other != 0))

        def element(operand: TensorValue, position: Position) -> Any:
            if not is_rounded or not build.may_be_unrounded(operand):
                return element_of(operand, shape, position, dtype)
            value = broadcast(operand, shape).load(position)
            return getattr(ops, _NEAREST[operand.dtype])(value).to(dtype)

        return build.pointwise(
            shape, torch.bool, lambda position: getattr(ops, name)(*(element(o, position) for o in numbers))
        )


for _name in COMPARISONS:
    _comparison(_name)


def _logical(name: str) -> None:
    @lowers(getattr(aten, name))
    def lowering(build: Builder, x: TensorValue, y: TensorValue) -> TensorValue:
        shape = broadcast_shapes(x, y)
        return build.pointwise(
            shape,
            torch.bool,
            lambda position: getattr(ops, name)(*(element_of(o, shape, position, torch.bool) for o in (x, y))),
        )


for _name in JOINED:
    _logical(f"logical_{_name}")
    lowers_elements(
        SAME, getattr(ops, f"bitwise_{_name}"), getattr(aten, f"bitwise_{_name}"),
        on_bool=getattr(ops, f"logical_{_name}"),
    )  # fmt: skip


def _shift(name: str, op: str) -> None:
    @lowers(getattr(aten, name))
    def lowering(build: Builder, x: Operand, y: Operand) -> TensorValue:
        dtype = dtypes_of(SAME, x, y)[0]
        if dtype.is_floating_point:
            raise CannotLower("it shifts floats")
        bits = dtype.itemsize * 8

        def function(a: Any, b: Any) -> Any:
            """Shifts by too much, which C leaves undefined, give what eager gives: all bits out, or all signs."""
            if isinstance(y, int) and 0 <= y < bits:
                return getattr(ops, op)(a, b)
            is_out = (b < 0) | (b >= bits)
            if op == "right_shift" and dtype.is_signed:
                return ops.right_shift(a, ops.where(is_out, bits - 1, b))
            return ops.where(is_out, 0, getattr(ops, op)(a, ops.where(is_out, 0, b)))

        return elementwise(build, SAME, function, x, y)


for _name, _op in SHIFTS.items():
    _shift(_name, _op)


@lowers(aten.where.self)
def where(build: Builder, condition: TensorValue, x: TensorValue, y: TensorValue) -> TensorValue:
    shape = broadcast_shapes(condition, x, y)
    compute, result = dtypes_of(Kind.NO_OPMATH, x, y)

    def element(position: Position) -> Any:
        chosen = element_of(condition, shape, position, torch.bool)
        return ops.where(chosen, element_of(x, shape, position, compute), element_of(y, shape, position, compute))

    return build.pointwise(shape, result, element)


# --- copies and conversions


@lowers(aten.clone)
def clone(build: Builder, x: TensorValue, memory_format: Any = None) -> TensorValue:
    return build.pointwise(x.shape, x.dtype, x.load)


@lowers(aten._to_copy, aten.to.dtype)
def to_copy(
    build: Builder, x: Operand, dtype: torch.dtype | None = None, layout: Any = None,
    device: torch.device | None = None, pin_memory: Any = None, non_blocking: bool = False,
    copy: bool = False, memory_format: Any = None,
) -> TensorValue:  # fmt: skip
    if not isinstance(x, TensorValue):  # `torch.vmap` has a number beside tensors converted to their dtype
        return constant(x, (), dtype or build.eager.dtype)
    if build.lies_elsewhere(x) or (device is not None and torch.device(device).type != build.device.type):
        raise CannotLower("it moves a tensor to another device")
    return build.pointwise(x.shape, dtype or x.dtype, x.load)


@lowers(torch.ops.prims.convert_element_type.default)
def convert_element_type(build: Builder, x: TensorValue, dtype: torch.dtype) -> TensorValue:
    return build.pointwise(x.shape, dtype, x.load)


@lowers(aten.copy)
def copy(build: Builder, x: TensorValue, source: TensorValue, non_blocking: bool = False) -> TensorValue:
    """A tensor shaped like `x` that holds `source`: what is left of `copy_` in a functional graph."""
    return build.pointwise(x.shape, x.dtype, broadcast(source, x.shape).load)


# A primitive of newer PyTorch that decompositions use to keep eager's strides, which the node's result has anyway.
if hasattr(torch.ops.prims, "copy_strided"):
    lowers(torch.ops.prims.copy_strided.default)(lambda build, x, *_: clone(build, x))
