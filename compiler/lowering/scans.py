"""Scans: running sums, products, extremes and their positions, one node each.

cumsum = aten.cumsum(x, 1)        for x0 < 64: for r0 < 512:  v = scan sum x[512*x0 + r0];  cumsum[512*x0 + r0] = v
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.ir.ops import compute_dtype, ops
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue
from compiler.lowering.views import wrap

aten = torch.ops.aten

#: Whole numbers narrower than this are compared in it: GPUs scan registers, which have 32 bits.
NARROWEST = torch.int32


def scan_along(
    build: Builder, kind: str, x: TensorValue, dim: int, dtype: torch.dtype, computed: torch.dtype, *, label: str = ""
) -> TensorValue:
    """The scan of `kind` of `x`, converted to `computed`, along one dimension, as a tensor of `dtype`."""
    at = wrap(dim, x.rank) if x.rank else 0
    is_position = kind.startswith("arg")

    def element(position: Position) -> Any:
        value = ops.to_dtype(x.load(position), computed)
        return ops.scan(kind, value, ops.index_value(position[at])) if is_position else ops.scan(kind, value)

    if x.rank and 0 not in x.shape:
        return build.scan(x.shape, dtype, at, element, label=label)
    return build.pointwise(
        x.shape, dtype, (lambda position: ops.constant(0, dtype)) if is_position else x.load, label=label
    )


def _total(kind: str) -> Callable[..., TensorValue]:
    """Sums and products: whole numbers in int64, as eager's, unless a dtype is asked for."""

    def lowering(build: Builder, x: TensorValue, dim: int, *, dtype: torch.dtype | None = None) -> TensorValue:
        result = dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)
        # Narrow whole numbers wrap around in the end as they would on the way.
        computed = compute_dtype(result) if result.is_floating_point else torch.int64
        if result == torch.bool:
            raise CannotLower("it sums truth values")
        return scan_along(build, kind, x, dim, result, computed)

    return lowering


lowers(aten.cumsum.default)(_total("sum"))
lowers(aten.cumprod.default)(_total("prod"))


def _extreme(kind: str) -> Callable[..., tuple[TensorValue, TensorValue]]:
    def lowering(build: Builder, x: TensorValue, dim: int) -> tuple[TensorValue, TensorValue]:
        is_narrow = not x.dtype.is_floating_point and x.dtype.itemsize < NARROWEST.itemsize
        computed = NARROWEST if is_narrow else compute_dtype(x.dtype)
        values = scan_along(build, kind, x, dim, x.dtype, computed, label="values")
        return values, scan_along(build, f"arg{kind}", x, dim, torch.int64, computed, label="indices")

    return lowering


lowers(aten.cummax.default)(_extreme("max"))
lowers(aten.cummin.default)(_extreme("min"))


@lowers(aten.logcumsumexp.default)
def logcumsumexp(build: Builder, x: TensorValue, dim: int) -> TensorValue:
    return scan_along(build, "logsumexp", x, dim, x.dtype, compute_dtype(x.dtype))
