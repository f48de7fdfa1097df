"""Powers: as few products or roots as the exponent asks for where it is known, and `pow` where nothing shorter is.

    x ** 5    ->   square = x * x;  x * (square * square)          x ** 2.5   ->   x * x * sqrt(x)
    2.0 ** y  ->   exp2(y)                                         n ** m     ->   one step for each bit of m

`pow` of floats costs some thirty multiplications. For some exponents ATen has a shorter way too; there it is the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import Kind, Operand, dtypes_of, elementwise
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, TensorValue

aten = torch.ops.aten


@lowers(aten.pow.Tensor_Scalar)
def pow_scalar(build: Builder, x: TensorValue, exponent: Any) -> TensorValue:
    """The exponents for which ATen has a shorter way take the same one here, and small whole ones are products."""
    kind = Kind.BOOL_TO_LONG
    dtype = dtypes_of(kind, x, exponent)[0]
    if not dtype.is_floating_point:
        if exponent < 0:
            raise CannotLower("it takes integers to a negative power")
        return elementwise(build, kind, lambda a: _repeated_product(a, int(exponent), dtype), x)
    return elementwise(build, kind, lambda a, b: _float_power(a, b, exponent, dtype), x, exponent)


#: The largest exponent whose power of a float is a product: each factor rounds once, and `pow` costs thirty of them.
LARGEST_PRODUCT = 16


def _repeated_product(base: Any, exponent: int, dtype: torch.dtype) -> Any:
    """A whole power by squaring, of integers with the wrap-around of their products."""
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        base = base * base if exponent else base
    return ops.constant(1, dtype) if result is None else result


def _float_power(base: Any, exponent: Any, number: float, dtype: torch.dtype) -> Any:
    if not math.isfinite(number):
        return ops.pow(base, exponent)
    if number == 0.5:
        return ops.sqrt(base)
    if number == -0.5:
        return ops.rsqrt(base)
    if number == 2:
        return ops.square(base)
    if number == 3:
        return ops.square(base) * base
    if number == int(number) and abs(number) <= LARGEST_PRODUCT:
        power = _repeated_product(base, abs(int(number)), dtype)
        return power if number >= 0 else ops.reciprocal(power)
    if 2 * number == int(2 * number) and abs(number) <= LARGEST_PRODUCT:
        return _power_of_root(base, number, dtype)
    return ops.pow(base, exponent)


def _power_of_root(base: Any, number: float, dtype: torch.dtype) -> Any:
    """A power between two whole ones by the root of the base. As with `pow`, that of an infinity or a zero does not
    depend on its sign, which a root's does."""
    base = ops.where(base == -math.inf, math.inf, base) + 0
    if number < 0:
        return _repeated_product(ops.rsqrt(base), round(-2 * number), dtype)
    return _repeated_product(base, int(number), dtype) * ops.sqrt(base)


@lowers(aten.pow.Scalar, aten.pow.Tensor_Tensor)
def pow_tensor(build: Builder, x: Operand, y: TensorValue) -> TensorValue:
    dtype = dtypes_of(Kind.BOOL_TO_LONG, x, y)[0]
    if not dtype.is_floating_point:
        return elementwise(build, Kind.BOOL_TO_LONG, lambda a, b: _integer_power(a, b, dtype), x, y)
    bits = _bits_of(x)
    if bits is None:
        return elementwise(build, Kind.BOOL_TO_LONG, ops.pow, x, y)
    return elementwise(build, Kind.BOOL_TO_LONG, lambda _, b: ops.exp2(b * bits), x, y)


def _bits_of(base: Operand) -> int | None:
    """The whole number n other than zero with base = 2**n: its powers are those of two by exact multiples, which take a
    fifteenth of the instructions of `pow`. None for other bases."""
    if not isinstance(base, int | float) or not math.isfinite(base):
        return None
    fraction, exponent = math.frexp(base)
    return exponent - 1 if fraction == 0.5 and exponent != 1 else None


def _integer_power(base: Any, exponent: Any, dtype: torch.dtype) -> Any:
    """By squaring, one step for each bit of the exponent; below zero only 1 and -1 have powers that are integers."""
    one = ops.constant(1, dtype)
    result, square = one, base
    limits = torch.iinfo(dtype)
    for bit in range(limits.max.bit_length()):
        is_set = ops.bitwise_and(exponent, 1 << bit) != 0
        result = ops.where(is_set, result * square, result)
        square = square * square
    if limits.min == 0:
        return result
    sign = ops.where(ops.bitwise_and(exponent, one) == 0, one, -1)
    below = ops.where(base == one, one, ops.where(base == -1, sign, 0))
    return ops.where(exponent < 0, below, result)
