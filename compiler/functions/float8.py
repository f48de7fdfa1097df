"""The number of a float8 format that is nearest to a float, as a float."""

from __future__ import annotations

import torch

from compiler.ir.float8 import FLOAT8, Float8
from compiler.ir.functions import function, named
from compiler.ir.ops import ops
from compiler.ir.value import Value


def _nearest(x: Value, form: Float8) -> Value:
    """Ties go to the even neighbour. The mantissa is rounded as an integer: what carries raises the exponent."""
    single = x.to(torch.float32)
    magnitude = named("magnitude", ops.where(single == single, abs(single), 0.0))
    dropped = 23 - form.mantissa_bits
    bits = named("bits", magnitude.bits(torch.int32))
    is_odd = ops.right_shift(bits, dropped) & 1
    rounded = ((bits + is_odd + ((1 << (dropped - 1)) - 1)) & -(1 << dropped)).bits(torch.float32)
    small = ops.round(magnitude * (1 / form.spacing)) * form.spacing
    nearest = named("nearest", ops.where(magnitude < form.smallest_normal, small, rounded))
    bounded = ops.where(nearest > form.largest, form.beyond, nearest)
    return ops.where(single == single, ops.copysign(bounded, single), single).to(x.dtype)


@function
def nearest_float8_e4m3fn(x: Value) -> Value:
    """x rounded to 4 bits of exponent and 3 of mantissa, without infinities."""
    return _nearest(x, FLOAT8[torch.float8_e4m3fn])


@function
def nearest_float8_e5m2(x: Value) -> Value:
    """x rounded to 5 bits of exponent and 2 of mantissa."""
    return _nearest(x, FLOAT8[torch.float8_e5m2])
