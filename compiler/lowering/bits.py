"""`x.view(dtype)`: the numbers that have the same bits. In memory it would be free; in a kernel it is free as well, and
what comes before and after it may fuse. Eager's result shares its memory with `x`, which is AOTAutograd's to keep.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.float8 import FLOAT8
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import SUPPORTED_DTYPES, CannotLower, TensorValue

aten = torch.ops.aten

#: Kept in bodies as numbers whose bits are others, or with bits that mean nothing.
_WITHOUT_BITS = frozenset((torch.float16, torch.bool, *FLOAT8))


@lowers(aten.view.dtype, aten.view_copy.dtype)
def view_dtype(build: Builder, x: TensorValue, dtype: torch.dtype) -> TensorValue:
    if x.dtype == dtype:
        return x
    if not {x.dtype, dtype} <= SUPPORTED_DTYPES - _WITHOUT_BITS:
        raise CannotLower(f"bodies hold no bits of {x.dtype} or of {dtype}")
    if x.dtype.itemsize != dtype.itemsize:
        raise CannotLower(f"{dtype} is not as wide as {x.dtype}")
    return build.pointwise(x.shape, dtype, lambda position: _reinterpreted(x.load(position), x.dtype, dtype))


def _reinterpreted(value: Any, given: torch.dtype, wanted: torch.dtype) -> Any:
    """bfloat16 is the upper half of a float32, which is what bodies hold of it."""
    if given == torch.bfloat16:
        return _upper_half(value).to(wanted)
    if wanted == torch.bfloat16:
        bits = value.to(torch.int32)
        return ops.bitcast(ops.left_shift(bits, 16), torch.float32)
    return ops.bitcast(value, wanted)


def _upper_half(value: Any) -> Any:
    """The bits of a float32 rounded to bfloat16, ties to even: a value that was fused in has not been in memory, so it
    may not be rounded yet."""
    bits = ops.bitcast(value, torch.int32)
    odd = ops.bitwise_and(ops.right_shift(bits, 16), 1)
    rounded = bits + 0x7FFF + odd
    kept = ops.where(ops.isnan(value), bits, rounded)  # the sum of a NaN's bits could overflow
    return ops.right_shift(kept, 16)
