"""Float8 in Triton: bytes, taken apart and put together by integer arithmetic.

Triton's own conversions exist on GPUs from compute capability 8.9 on alone. There those of e4m3fn are one instruction
for two numbers, and are taken, as a kernel is compiled for such a GPU; what is too large, they turn into the largest
number. Those of e5m2 do so as well, which is not what PyTorch gives. Integers do the same on every GPU and in the
interpreter.
"""

from __future__ import annotations

from math import isnan

import torch

from compiler.ir.float8 import FLOAT8, Float8

_FROM_BITS = '''@triton.jit
def {function}(byte):
    """The number of a {name}."""
    magnitude = (byte & 0x7F).to(tl.int32)
    small = magnitude.to(tl.float32) * {spacing!r}
    normal = ((magnitude << {dropped}) + {offset:#x}).to(tl.float32, bitcast=True)
    number = tl.where(magnitude < {first_normal}, small, normal)
    number = {special}
    return tl.where(byte >= 0x80, -number, number)
'''

_TO_BITS = '''@triton.jit
def {function}(number):
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

_EITHER_WAY = '''@triton.jit
def {function}({value}):
    """{summary}, by the GPU's own conversion where it has one."""
    if cuda_capability_geq(8, 9):
        result = {own}
    else:
        result = {function}_by_bits({value})
    return result
'''
_FROM_OWN = "byte.to(tl.float8e4nv, bitcast=True).to(tl.float32)"
_TO_OWN = "number.to(tl.float8e4nv).to(tl.uint8, bitcast=True)"
#: Numbers above the middle between the largest one and what would be the next are too large.
_TOO_LARGE = 464.0


def has_own_conversion(form: Float8) -> bool:
    return form.mantissa_bits == 3


def nearest_either_way(function: str, form: Float8) -> str:
    """The function that rounds a float32 to the format, beside `{function}_by_bits`."""
    own = "x.to(tl.float8e4nv).to(tl.float32)"
    if isnan(form.beyond):
        own = f'tl.where(tl.abs(x) > {_TOO_LARGE}, float("nan"), {own})'
    return _EITHER_WAY.format(function=function, value="x", summary=f"x rounded to a {form.name}", own=own)


def _texts(form: Float8) -> dict[str, str]:
    """The functions that take a byte apart and put one together."""
    dropped, has_infinity = 23 - form.mantissa_bits, form.mantissa_bits == 2
    infinity = 'tl.where(magnitude == 0x7C, float("inf"), number)'
    nan = f'tl.where(magnitude > {0x7C if has_infinity else 0x7E:#x}, float("nan"), number)'
    facts = dict(
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
    of, to = f"float32_of_{form.name}", f"{form.name}_of_float32"
    by_bits = "_by_bits" if has_own_conversion(form) else ""
    bits = {f"{name}{by_bits}": text for name, text in ((of, _FROM_BITS), (to, _TO_BITS))}
    texts = {name: text.format(function=name, **facts) for name, text in bits.items()}
    if not by_bits:
        return texts
    summary = f"The byte of a number that a {form.name} is"
    return texts | {
        of: _EITHER_WAY.format(function=of, value="byte", summary=f"The number of a {form.name}", own=_FROM_OWN),
        to: _EITHER_WAY.format(function=to, value="number", summary=summary, own=_TO_OWN),
    }


HELPERS = {name: text for form in FLOAT8.values() for name, text in _texts(form).items()}


def loaded(text: str, storage: torch.dtype) -> str:
    """What was loaded from a buffer of float8, as float32."""
    return f"float32_of_{FLOAT8[storage].name}({text})"


def stored(text: str, storage: torch.dtype) -> str:
    """A float32 as the byte that goes into a buffer of float8."""
    return f"{FLOAT8[storage].name}_of_float32({text})"
