"""Pointwise operators. Most are a row of a table: the ATen operator and the op of the loop IR that computes it."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import torch

import compiler.functions  # noqa: F401  (which defines what is called here by name)
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import Kind, Operand, dtypes_of, elementwise, in_common_dtype, lowers_elements
from compiler.lowering.registry import LATE_LOWERINGS, lowers
from compiler.lowering.values import CannotLower, TensorValue

aten = torch.ops.aten

SAME = Kind.DEFAULT
FLOAT = Kind.INT_TO_FLOAT

#: Integers become floats.
FLOAT_UNARY = (
    "sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos sigmoid tan asin acos atan sinh cosh tanh asinh"
    " acosh atanh erf erfc lgamma"
).split()
#: The dtype stays; integers are already rounded.
ROUNDING = "floor ceil trunc round".split()
SAME_UNARY = "neg abs sign relu".split()
FLOAT_BINARY = "atan2 hypot copysign".split()
#: Operators that are named functions; integers become floats.
FUNCTIONS = {
    "digamma": "psi",
    "erfinv": "inverse_erf",
    "special_erfcx": "scaled_erfc",
    "special_ndtri": "inverse_normal",
}


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def same(value: Any) -> Any:
    return value


for _name in FLOAT_UNARY:
    lowers_elements(FLOAT, getattr(ops, _name), getattr(aten, _name))
for _name in ROUNDING:
    lowers_elements(SAME, getattr(ops, _name), getattr(aten, _name).default, on_integers=same)
for _name in SAME_UNARY:
    # On bool, all of these that eager accepts give back what they are given.
    lowers_elements(SAME, getattr(ops, _name), getattr(aten, _name), on_bool=same)
for _name in FLOAT_BINARY:
    lowers_elements(FLOAT, getattr(ops, _name), getattr(aten, _name))
for _name, _function in FUNCTIONS.items():
    lowers_elements(FLOAT, getattr(ops, _function), getattr(aten, _name))

lowers_elements(SAME, ops.bitwise_not, aten.bitwise_not, on_bool=ops.logical_not)
#: Eager only notes the sign for later; here it is computed.
neg_view = lowers_elements(SAME, ops.neg, aten._neg_view)


@lowers(aten.round.decimals)
def round_decimals(build: Builder, x: TensorValue, *, decimals: int = 0) -> TensorValue:
    """By way of the number scaled to whole decimals, as ATen does."""
    power = float(10 ** abs(decimals))

    def function(value: Any) -> Any:
        scaled = value * power if decimals >= 0 else value / power
        return ops.round(scaled) / power if decimals >= 0 else ops.round(scaled) * power

    return elementwise(build, SAME, function if is_float(x.dtype) else same, x)


@lowers(aten.angle)
def angle(build: Builder, x: TensorValue) -> TensorValue:
    """Of real numbers: zero, or pi for a negative one."""
    dtype = dtypes_of(FLOAT, x)[0]

    def function(value: Any) -> Any:
        return ops.where(ops.isnan(value), value, ops.where(value < 0.0, ops.constant(pi, dtype), 0.0))

    return elementwise(build, FLOAT, function, x)


def _predicate(name: str) -> None:
    @lowers(getattr(aten, name))
    def lowering(build: Builder, x: TensorValue) -> TensorValue:
        if x.dtype.is_complex:
            raise CannotLower("loops do not compute with complex numbers")
        is_never = x.dtype in (torch.bool, torch.uint8) if name == "signbit" else not is_float(x.dtype)
        if is_never:
            return build.pointwise(x.shape, torch.bool, lambda position: ops.constant(False, torch.bool))
        return build.pointwise(x.shape, torch.bool, lambda position: getattr(ops, name)(x.load(position)))


for _name in "isnan isinf signbit".split():
    _predicate(_name)


@lowers(aten.logical_not)
def logical_not(build: Builder, x: TensorValue) -> TensorValue:
    return build.pointwise(x.shape, torch.bool, lambda position: ~x.load(position).to(torch.bool))


# --- sums, products, quotients


def _scaled(value: Any, factor: Any, dtype: torch.dtype) -> Any:
    if factor == 1 and not isinstance(factor, bool):
        return value
    if dtype == torch.bool:
        return value & bool(factor)
    return value * factor


def _sum(build: Builder, x: Operand, y: Operand, alpha: Any, op: str) -> TensorValue:
    compute = dtypes_of(SAME, x, y)[0]

    def function(a: Any, b: Any) -> Any:
        if compute == torch.bool:
            return a | _scaled(b, alpha, compute)
        return getattr(ops, op)(a, _scaled(b, alpha, compute))

    return elementwise(build, SAME, function, x, y)


def multiply_add(build: Builder, a: Operand, b: Operand, c: Operand) -> TensorValue:
    """a * b + c. The product is rounded too, as everywhere else."""
    return elementwise(build, SAME, lambda x, y, z: x * y + z, a, b, c)


# Dynamo writes `addcmul_` and `addcdiv_` of a `value` with it, and defines it only then.
LATE_LOWERINGS["prims.fma"] = multiply_add


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(build: Builder, x: Operand, y: Operand, alpha: Any = 1) -> TensorValue:
    return _sum(build, x, y, alpha, "add")


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(build: Builder, x: Operand, y: Operand, alpha: Any = 1) -> TensorValue:
    return _sum(build, x, y, alpha, "sub")


mul = lowers_elements(SAME, ops.mul, aten.mul.Tensor, aten.mul.Scalar, on_bool=ops.logical_and)
div = lowers_elements(FLOAT, ops.truediv, aten.div.Tensor, aten.div.Scalar, aten.true_divide)


def _remainder(name: str) -> None:
    @lowers(getattr(aten, name))
    def lowering(build: Builder, x: Operand, y: Operand) -> TensorValue:
        return elementwise(build, SAME, getattr(ops, name), *in_common_dtype(x, y))


for _name in ("remainder", "fmod"):
    _remainder(_name)


def _floor_quotient(a: Any, b: Any) -> Any:
    """Floor division of floats as ATen computes it: from the exact remainder, so that the rounded quotient of two
    nearly divisible numbers is not floored to the integer above."""
    remainder = ops.fmod(a, b)
    quotient = (a - remainder) / b
    is_one_high = (remainder != 0.0) & ((b < 0.0) != (remainder < 0.0))
    quotient = ops.where(is_one_high, quotient - 1.0, quotient)
    floored = ops.floor(quotient)
    floored = ops.where(quotient - floored > 0.5, floored + 1.0, floored)
    floored = ops.where(quotient == 0.0, ops.copysign(0.0, a / b), floored)
    return ops.where(b == 0.0, a / b, floored)


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(build: Builder, x: Operand, y: Operand, rounding_mode: str | None = None) -> TensorValue:
    if rounding_mode is None:
        return div(build, x, y)
    dtype = dtypes_of(SAME, x, y)[0]
    if dtype == torch.bool:
        raise CannotLower("it divides bools")
    if rounding_mode == "trunc":
        function = ops.truncdiv
    else:
        function = _floor_quotient if is_float(dtype) else ops.floordiv
    return elementwise(build, SAME, function, x, y)


@lowers(aten.floor_divide)
def floor_divide(build: Builder, x: Operand, y: Operand) -> TensorValue:
    return div_mode(build, x, y, rounding_mode="floor")


# --- the smaller, the larger, and what lies between


def _number_rather(extreme: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """fmin and fmax: a NaN loses against a number."""
    return lambda a, b: ops.where(ops.isnan(a), b, ops.where(ops.isnan(b), a, extreme(a, b)))


minimum = lowers_elements(SAME, ops.minimum, aten.minimum, aten.min.other, on_bool=ops.logical_and)
maximum = lowers_elements(SAME, ops.maximum, aten.maximum, aten.max.other, on_bool=ops.logical_or)
lowers_elements(
    SAME, _number_rather(ops.minimum), aten.fmin, on_bool=ops.logical_and, on_integers=ops.minimum
)  # fmt: skip
lowers_elements(
    SAME, _number_rather(ops.maximum), aten.fmax, on_bool=ops.logical_or, on_integers=ops.maximum
)  # fmt: skip


@lowers(aten.clamp)
def clamp(build: Builder, x: TensorValue, min: Operand = None, max: Operand = None) -> TensorValue:
    bounds = [bound for bound in (min, max) if bound is not None]

    def function(value: Any, *limits: Any) -> Any:
        # What comes last stays of two that are equal, as 0.0 and -0.0 are: in eager mode the value beside numbers, and
        # the bound where it is a tensor.
        rest = list(limits)
        for operator, bound in ((ops.maximum, min), (ops.minimum, max)):
            if bound is not None:
                limit = rest.pop(0)
                value = operator(value, limit) if isinstance(bound, TensorValue) else operator(limit, value)
        return value

    return elementwise(build, SAME, function, x, *bounds)
