"""What `ops` hands out while a body is traced, with Python's operators, for formulas that read like mathematics.

    t = 16.0 / x - 1.0        for        ops.sub(ops.truediv(ops.constant(16.0, dtype), x), ops.constant(1.0, dtype))

A Python number beside a value is a constant of its dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.ir.ops import ops


def _operator(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: ops.call(op, self, other)


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: ops.call(op, other, self)


class Value:
    """The number of an instruction, and its dtype. Comparisons give values too, which `&` and `|` join."""

    __slots__ = ("dtype", "number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: int, dtype: torch.dtype) -> None:
        self.number, self.dtype = number, dtype

    def __bool__(self) -> bool:
        raise TypeError("a value of a body is known only when its loop runs; choose by ops.where")

    def __add__(self, other: Any) -> Any:
        is_less = isinstance(other, int | float) and other < 0
        return ops.sub(self, -other) if is_less else ops.add(self, other)

    def __sub__(self, other: Any) -> Any:
        is_less = isinstance(other, int | float) and other < 0
        return ops.add(self, -other) if is_less else ops.sub(self, other)

    __radd__, __rsub__ = _reflected("add"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("truediv"), _reflected("truediv")
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")
    __eq__, __ne__ = _operator("eq"), _operator("ne")

    def __and__(self, other: Any) -> Any:
        return ops.call("logical_and" if self.dtype == torch.bool else "bitwise_and", self, other)

    def __or__(self, other: Any) -> Any:
        return ops.call("logical_or" if self.dtype == torch.bool else "bitwise_or", self, other)

    def __invert__(self) -> Any:
        return ops.logical_not(self)

    def __neg__(self) -> Any:
        return ops.neg(self)

    def __abs__(self) -> Any:
        return ops.abs(self)

    def to(self, dtype: torch.dtype) -> Any:
        return ops.to_dtype(self, dtype)

    def bits(self, dtype: torch.dtype) -> Any:
        """The number of type `dtype` that has the same bits."""
        return ops.bitcast(self, dtype)
