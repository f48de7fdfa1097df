"""A faster logarithm of numbers that are known to be normal, whatever the data.

    log(exp(x) / total + 1e-9)          at least 1e-9, or NaN         log_of_normal(...)
    log(clamp(x, min=1e-8))             at least 1e-8, or NaN         log_of_normal(...)
    log(x + 1e-9), log(abs(x))          may be negative, or zero      as it is

A third of the instructions of CUDA's function are for denormal numbers, zero and what is below zero. The form here has
an error of at most 1.1 units in the last place, as that function has, and the same limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from compiler.schedule.program.program import Statement

LOG = "log_of_normal"

#: The smallest normal float32.
_SMALLEST = torch.finfo(torch.float32).tiny

#: Those whose result has no sign, whatever their operand has. Minus zero has one: what is divided by it would be below
#: zero.
_WITHOUT_SIGN = frozenset("exp exp2 quick_exp abs square sigmoid quick_sigmoid rand".split())
#: Those whose result has no sign where no operand has one.
_KEEP_SIGNS = frozenset("add mul truediv reciprocal minimum maximum sqrt".split())
_REDUCTIONS_THAT_DO = ("sum", "prod", "min", "max")


def with_fast_logarithms(statements: list[Statement]) -> list[Statement]:
    """The statements with the faster form where it may stand; each keeps its number."""
    logs = {s.number: s.operands[0] for s in statements if s.op == "log" and s.dtype == torch.float32}
    if not logs:
        return statements
    found = _Bounds({s.number: s for s in statements})
    fast = {number for number, operand in logs.items() if found.is_normal(operand)}
    return [replace(s, op=LOG) if s.number in fast else s for s in statements]


class _Bounds:
    """What is known of values in float32, NaN left aside."""

    def __init__(self, by_number: dict[int, Statement]) -> None:
        self._by_number = by_number
        self._known: dict[tuple[str, int], bool] = {}

    def is_normal(self, number: int) -> bool:
        """Whether a value is no smaller than the smallest normal number."""
        return self._found("normal", number, self._is_normal)

    def has_no_sign(self, number: int) -> bool:
        """Whether the sign bit of a value is not set."""
        return self._found("without a sign", number, self._has_no_sign)

    def _found(self, what: str, number: int, ask: Callable[[Statement], bool]) -> bool:
        key = what, number
        if key not in self._known:
            s = self._by_number[number]
            self._known[key] = s.dtype == torch.float32 and ask(s)
        return self._known[key]

    def _is_normal(self, s: Statement) -> bool:
        if s.op == "constant":
            return isinstance(s.value, int | float) and s.value >= _SMALLEST
        if s.op == "maximum":
            return any(self.is_normal(n) for n in s.operands)
        if s.op in ("minimum", "sqrt"):
            return all(self.is_normal(n) for n in s.operands)
        if s.op == "where":
            return all(self.is_normal(n) for n in s.operands[1:])
        is_sum = s.op == "add" and all(self.has_no_sign(n) for n in s.operands)
        return is_sum and any(self.is_normal(n) for n in s.operands)

    def _has_no_sign(self, s: Statement) -> bool:
        if s.op == "constant":
            return isinstance(s.value, int | float) and math.copysign(1.0, s.value) > 0
        if s.op in _WITHOUT_SIGN or (s.op == "mul" and s.operands[0] == s.operands[1]):
            return True
        if s.op in _KEEP_SIGNS:
            return all(self.has_no_sign(n) for n in s.operands) or self.is_normal(s.number)
        if s.op == "where":
            return all(self.has_no_sign(n) for n in s.operands[1:])
        if s.op == "reduce":
            return s.value in _REDUCTIONS_THAT_DO and self.has_no_sign(s.operands[0])
        return s.op == "to_dtype" and self._by_number[s.operands[0]].dtype in (torch.bool, torch.uint8)
