"""Functions that take floating point numbers and integers apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler.ir.functions import function, integer_function, named, repeat
from compiler.ir.terms import Term, call, term, where


@dataclass(frozen=True)
class Format:
    """How a float of IEEE 754 lies in an integer as wide."""

    integer: torch.dtype
    mantissa_bits: int
    bias: int

    @property
    def exponent_mask(self) -> int:
        return (2 * self.bias + 1) << self.mantissa_bits


def _format_of(x: Term) -> Format:
    return Format(torch.int64, 52, 1023) if x.dtype == torch.float64 else Format(torch.int32, 23, 127)


def _split(x: Term) -> tuple[Term, Term]:
    """x = mantissa * 2^exponent with a mantissa from 1/2 to 1; zero, infinities and NaN are their own mantissas."""
    form = _format_of(x)
    is_tiny = abs(x) < 2.0 ** (1 - form.bias)
    scaled = named("scaled", where(is_tiny, x * 2.0 ** (form.mantissa_bits + 1), x))
    bits = named("bits", scaled.bits(form.integer))
    is_special = (x == 0.0) | ~(abs(x) < float("inf"))
    field = call("right_shift", bits & form.exponent_mask, form.mantissa_bits)
    offset = where(is_tiny, term(form.bias + form.mantissa_bits, x.dtype), form.bias - 1)
    exponent = field.to(x.dtype) - offset
    rest = bits & ~form.exponent_mask
    mantissa = (rest | ((form.bias - 1) << form.mantissa_bits)).bits(x.dtype)
    return where(is_special, x, mantissa), where(is_special, 0.0, exponent)


@function
def mantissa_of(x: Term) -> Term:
    """The m of x = m * 2^e with 1/2 <= |m| < 1."""
    return _split(x)[0]


@function
def exponent_of(x: Term) -> Term:
    """The e of x = m * 2^e with 1/2 <= |m| < 1."""
    return _split(x)[1]


@function
def scaled_by_power_of_two(x: Term, exponent: Term) -> Term:
    """x * 2^exponent, exact unless the result is too large or too small."""
    form = _format_of(x)
    # Four factors reach from the smallest number to the largest, and each of them is a normal number.
    most = 2.0 * (form.bias + form.mantissa_bits + 1)
    clamped = where(exponent > most, most, where(exponent < -most, -most, exponent))
    part = named("part", call("floor", clamped * 0.25))
    last = named("last", clamped - 3.0 * part)
    factor, last_factor = (
        call("left_shift", (power + float(form.bias)).to(form.integer), form.mantissa_bits).bits(x.dtype)
        for power in (part, last)
    )
    scaled = named("scaled", x * factor)
    scaled = named("scaled", scaled * factor)
    scaled = named("scaled", scaled * factor)
    return where((x == 0.0) | (abs(x) == float("inf")), x, scaled * last_factor)


def _step(x: Term, y: Term, spacing: int, smallest: float) -> Term:
    """The neighbour of x on the way to y, of numbers whose bits are `spacing` apart."""
    form = _format_of(x)
    bits = named("bits", x.bits(form.integer))
    is_outwards = (x < y) == (x > 0.0)
    neighbour = where(is_outwards, bits + spacing, bits - spacing).bits(x.dtype)
    from_zero = where(y > 0.0, term(smallest, x.dtype), -smallest)
    stepped = where(x == 0.0, from_zero, neighbour)
    return where((x == x) & (y == y), where(x == y, y, stepped), x + y)


@function
def next_after(x: Term, y: Term) -> Term:
    """The number next to x on the way to y."""
    return _step(x, y, 1, 2.0**-1074 if x.dtype == torch.float64 else 2.0**-149)


@function
def next_after_in_bfloat16(x: Term, y: Term) -> Term:
    """The bfloat16 next to x on the way to y, both held as float32."""
    return _step(x, y, 1 << 16, 2.0**-133)


@integer_function
def greatest_common_divisor(a: Term, b: Term) -> Term:
    """The largest number that divides both a and b, by Euclid's algorithm."""
    state = repeat(
        {"b": abs(a), "a": abs(b)},
        lambda a, b: b != 0,
        lambda a, b: {"a": b, "b": call("fmod", a, where(b == 0, 1, b))},
        trips=10,
    )
    return state["a"]
