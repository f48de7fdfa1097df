"""Float8 in Triton: bytes, taken apart and put together by integer arithmetic.

Triton's own conversions exist on GPUs from compute capability 8.9 on alone, and turn what is too large for the format
into its largest number, which is not what PyTorch gives. These do the same on every GPU and in the interpreter.
"""

from __future__ import annotations

import torch

from compiler.ir.float8 import FLOAT8, Float8

_TEMPLATE = '''@triton.jit
def float32_of_{name}(byte):
    """The number of a {name}."""
    magnitude = (byte & 0x7F).to(tl.int32)
    small = magnitude.to(tl.float32) * {spacing!r}
    normal = ((magnitude << {dropped}) + {offset:#x}).to(tl.float32, bitcast=True)
    number = tl.where(magnitude < {first_normal}, small, normal)
    number = {special}
    return tl.where(byte >= 0x80, -number, number)


@triton.jit
def {name}_of_float32(number):
    """The byte of a number that a {name} is."""
    bits = number.to(tl.int32, bitcast=True)
    magnitude = bits & 0x7FFFFFFF
    size = tl.abs(number)
    small = tl.where(size < {smallest_normal!r}, size * {units!r}, 0.0).to(tl.int32)
    normal = (magnitude >> {dropped}) - {offset_of_byte:#x}
    byte = tl.where(size < {smallest_normal!r}, small, tl.minimum(normal, {largest_byte:#x}))
    byte = tl.where(number != number, 0x7F, byte)
    return (byte | ((bits >> 24) & 0x80)).to(tl.uint8)
'''


def _text(form: Float8) -> str:
    dropped, has_infinity = 23 - form.mantissa_bits, form.mantissa_bits == 2
    infinity = 'tl.where(magnitude == 0x7C, float("inf"), number)'
    nan = f'tl.where(magnitude > {0x7C if has_infinity else 0x7E:#x}, float("nan"), number)'
    return _TEMPLATE.format(
        name=form.name,
        spacing=form.spacing,
        units=1 / form.spacing,
        dropped=dropped,
        offset=(127 - form.bias) << 23,
        offset_of_byte=(127 - form.bias) << form.mantissa_bits,
        first_normal=1 << form.mantissa_bits,
        smallest_normal=form.smallest_normal,
        largest_byte=0x7C if has_infinity else 0x7F,
        special=f"{infinity}\n    number = {nan}" if has_infinity else nan,
    )


#: The two functions of each format, by its name.
FLOAT8_HELPERS = {form.name: _text(form) for form in FLOAT8.values()}


def loaded(text: str, storage: torch.dtype) -> str:
    """What was loaded from a buffer of float8, as float32."""
    return f"float32_of_{FLOAT8[storage].name}({text})"


def stored(text: str, storage: torch.dtype) -> str:
    """A float32 as the byte that goes into a buffer of float8."""
    return f"{FLOAT8[storage].name}_of_float32({text})"
