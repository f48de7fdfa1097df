"""Whole numbers that an expression of Python comes to, told without running it: sizes as somebody wrote them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
#: `2 ** 99999` would take for ever: a size has fewer bits than this.
_MOST_BITS = 64


def whole_number(value: ast.expr, known: Mapping[str, int]) -> int | None:
    """The number that an expression of numbers, and of names of numbers, comes to; None where it is no such one."""
    match value:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return known.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = whole_number(operand, known)
            return None if positive is None else -positive
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _calculated(whole_number(left, known), type(op), whole_number(right, known))
    return None


def _calculated(left: int | None, op: type[ast.operator], right: int | None) -> int | None:
    if left is None or right is None or max(abs(left).bit_length(), abs(right).bit_length()) > _MOST_BITS:
        return None
    if op in (ast.LShift, ast.Pow) and not 0 <= right <= _MOST_BITS:
        return None
    return None if op in (ast.FloorDiv, ast.Mod) and right == 0 else _OPERATORS[op](left, right)
