"""Functions that take floating point numbers and integers apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler.ir.functions import function, integer_function, named, repeat
from compiler.ir.ops import ops
from compiler.ir.value import Value


@dataclass(frozen=True)
class Format:
    """How a float of IEEE 754 lies in an integer as wide."""

    integer: torch.dtype
    mantissa_bits: int
    bias: int

    @property
    def exponent_mask(self) -> int:
        return (2 * self.bias + 1) << self.mantissa_bits


def _format_of(x: Value) -> Format:
    return Format(torch.int64, 52, 1023) if x.dtype == torch.float64 else Format(torch.int32, 23, 127)


def _split(x: Value) -> tuple[Value, Value]:
    """x = mantissa * 2^exponent with a mantissa from 1/2 to 1; zero, infinities and NaN are their own mantissas."""
    form = _format_of(x)
    is_tiny = abs(x) < 2.0 ** (1 - form.bias)
    scaled = named("scaled", ops.where(is_tiny, x * 2.0 ** (form.mantissa_bits + 1), x))
    bits = named("bits", scaled.bits(form.integer))
    is_special = (x == 0.0) | ~(abs(x) < float("inf"))
    field = ops.right_shift(bits & form.exponent_mask, form.mantissa_bits)
    offset = ops.where(is_tiny, ops.constant(form.bias + form.mantissa_bits, x.dtype), form.bias - 1)
    exponent = field.to(x.dtype) - offset
    rest = bits & ~form.exponent_mask
    mantissa = (rest | ((form.bias - 1) << form.mantissa_bits)).bits(x.dtype)
    return ops.where(is_special, x, mantissa), ops.where(is_special, 0.0, exponent)


@function
def mantissa_of(x: Value) -> Value:
    """The m of x = m * 2^e with 1/2 <= |m| < 1."""
    return _split(x)[0]


@function
def exponent_of(x: Value) -> Value:
    """The e of x = m * 2^e with 1/2 <= |m| < 1."""
    return _split(x)[1]


@function
def scaled_by_power_of_two(x: Value, exponent: Value) -> Value:
    """x * 2^exponent, exact unless the result is too large or too small."""
    form = _format_of(x)
    # Four factors reach from the smallest number to the largest, and each of them is a normal number.
    most = 2.0 * (form.bias + form.mantissa_bits + 1)
    clamped = ops.where(exponent > most, most, ops.where(exponent < -most, -most, exponent))
    part = named("part", ops.floor(clamped * 0.25))
    last = named("last", clamped - 3.0 * part)
    factor, last_factor = (
        ops.left_shift((power + float(form.bias)).to(form.integer), form.mantissa_bits).bits(x.dtype)
        for power in (part, last)
    )
    scaled = named("scaled", x * factor)
    scaled = named("scaled", scaled * factor)
    scaled = named("scaled", scaled * factor)
    return ops.where((x == 0.0) | (abs(x) == float("inf")), x, scaled * last_factor)


def _step(x: Value, y: Value, spacing: int, smallest: float) -> Value:
    """The neighbour of x on the way to y, of numbers whose bits are `spacing` apart."""
    form = _format_of(x)
    bits = named("bits", x.bits(form.integer))
    is_outwards = (x < y) == (x > 0.0)
    neighbour = ops.where(is_outwards, bits + spacing, bits - spacing).bits(x.dtype)
    from_zero = ops.where(y > 0.0, ops.constant(smallest, x.dtype), -smallest)
    stepped = ops.where(x == 0.0, from_zero, neighbour)
    return ops.where((x == x) & (y == y), ops.where(x == y, y, stepped), x + y)


@function
def next_after(x: Value, y: Value) -> Value:
    """The number next to x on the way to y."""
    return _step(x, y, 1, 2.0**-1074 if x.dtype == torch.float64 else 2.0**-149)


@function
def next_after_in_bfloat16(x: Value, y: Value) -> Value:
    """The bfloat16 next to x on the way to y, both held as float32."""
    return _step(x, y, 1 << 16, 2.0**-133)


@integer_function
def greatest_common_divisor(a: Value, b: Value) -> Value:
    """The largest number that divides both a and b, by Euclid's algorithm."""
    state = repeat(
        {"b": abs(a), "a": abs(b)},
        lambda a, b: b != 0,
        lambda a, b: {"a": b, "b": ops.fmod(a, ops.where(b == 0, 1, b))},
        trips=10,
    )
    return state["a"]
