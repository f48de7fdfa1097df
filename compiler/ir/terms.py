"""Values of a body with Python's operators, for formulas that read like mathematics.

    t = 16.0 / x - 1.0        for        ops.sub(ops.truediv(ops.constant(16.0, dtype), x), ops.constant(1.0, dtype))

A Python number beside a term is a constant of the term's dtype.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.ops import ops


class Term:
    """One value. Comparisons give terms of truth values, which `&` and `|` join."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.value.dtype
        return dtype

    def _with(self, op: str, other: Any) -> Term:
        return Term(ops.call(op, self.value, term(other, self.dtype).value))

    def _after(self, op: str, other: Any) -> Term:
        return Term(ops.call(op, term(other, self.dtype).value, self.value))

    def __add__(self, other: Any) -> Term:
        if isinstance(other, int | float) and other < 0:
            return self._with("sub", -other)
        return self._with("add", other)

    def __sub__(self, other: Any) -> Term:
        if isinstance(other, int | float) and other < 0:
            return self._with("add", -other)
        return self._with("sub", other)

    def __radd__(self, other: Any) -> Term:
        return self._after("add", other)

    def __rsub__(self, other: Any) -> Term:
        return self._after("sub", other)

    def __mul__(self, other: Any) -> Term:
        return self._with("mul", other)

    def __rmul__(self, other: Any) -> Term:
        return self._after("mul", other)

    def __truediv__(self, other: Any) -> Term:
        return self._with("truediv", other)

    def __rtruediv__(self, other: Any) -> Term:
        return self._after("truediv", other)

    def __neg__(self) -> Term:
        return Term(ops.neg(self.value))

    def __abs__(self) -> Term:
        return Term(ops.abs(self.value))

    def __lt__(self, other: Any) -> Term:
        return self._with("lt", other)

    def __le__(self, other: Any) -> Term:
        return self._with("le", other)

    def __gt__(self, other: Any) -> Term:
        return self._with("gt", other)

    def __ge__(self, other: Any) -> Term:
        return self._with("ge", other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("eq", other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return self._with("ne", other)

    def __and__(self, other: Any) -> Term:
        return self._with("logical_and" if self.dtype == torch.bool else "bitwise_and", other)

    def __or__(self, other: Any) -> Term:
        return self._with("logical_or" if self.dtype == torch.bool else "bitwise_or", other)

    def __invert__(self) -> Term:
        return Term(ops.logical_not(self.value))

    def to(self, dtype: torch.dtype) -> Term:
        return Term(ops.to_dtype(self.value, dtype))

    def bits(self, dtype: torch.dtype) -> Term:
        """The number of type `dtype` that has the same bits."""
        return Term(ops.bitcast(self.value, dtype))


def term(value: Any, dtype: torch.dtype) -> Term:
    """`value`, or a constant of `dtype` where it is a Python number."""
    return value if isinstance(value, Term) else Term(ops.constant(value, dtype))


def where(condition: Term, if_true: Any, if_false: Any) -> Term:
    dtype = next((value.dtype for value in (if_true, if_false) if isinstance(value, Term)), None)
    assert dtype is not None, "one of the two must be a term"
    return Term(ops.where(condition.value, term(if_true, dtype).value, term(if_false, dtype).value))


def call(op: str, *arguments: Any) -> Term:
    """An op of `POINTWISE` or a named function; the first argument is a term."""
    return Term(ops.call(op, *(term(argument, arguments[0].dtype).value for argument in arguments)))
