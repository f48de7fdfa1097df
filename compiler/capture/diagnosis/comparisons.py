"""Which values fail a comparison, in words: `4 <= x.size(0)` fails for `x.size(0)` below 4."""

from __future__ import annotations

import ast

#: What a value on the left of the operator is like when the comparison fails.
_FAILING: dict[type[ast.cmpop], str] = {
    ast.Eq: "other than",
    ast.NotEq: "equal to",
    ast.Is: "other than",
    ast.IsNot: "equal to",
    ast.Lt: "of at least",
    ast.LtE: "above",
    ast.Gt: "of at most",
    ast.GtE: "below",
}
#: What it is like when the comparison holds.
_HOLDING: dict[type[ast.cmpop], str] = {
    ast.Eq: "",
    ast.Is: "",
    ast.NotEq: "not ",
    ast.IsNot: "not ",
    ast.Lt: "below ",
    ast.LtE: "at most ",
    ast.Gt: "above ",
    ast.GtE: "at least ",
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_ENDS = (ast.Lt, ast.LtE)


def fails_comparison(code: str) -> str | None:
    """The values for which one comparison does not hold, such as "`n` other than 6"; None for any other code."""
    try:
        parsed = ast.parse(code, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(parsed, ast.Compare):
        return None
    if len(parsed.ops) == 2 and all(isinstance(op, _ENDS) for op in parsed.ops):
        middle = parsed.comparators[0]
        return f"`{ast.unparse(middle)}` outside of `{ast.unparse(parsed)}`" if not _is_constant(middle) else None
    if len(parsed.ops) != 1 or type(parsed.ops[0]) not in _FAILING:
        return None
    left, operator, right = parsed.left, type(parsed.ops[0]), parsed.comparators[0]
    if _is_constant(left):
        left, operator, right = right, _MIRRORED.get(operator, operator), left
    limit = ast.unparse(right)
    return f"`{ast.unparse(left)}` {_FAILING[operator]} {limit if _is_constant(right) else f'`{limit}`'}"


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def compared_value(code: str) -> tuple[str, str] | None:
    """(what, with what) of a comparison with a constant: ("n", "6") of `n == 6`, ("n", "at least 4") of `4 <= n`."""
    try:
        parsed = ast.parse(code, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(parsed, ast.Compare) or len(parsed.ops) != 1:
        return None
    left, operator, right = parsed.left, type(parsed.ops[0]), parsed.comparators[0]
    if _is_constant(left):
        left, operator, right = right, _MIRRORED.get(operator, operator), left
    if not _is_constant(right) or operator not in _HOLDING:
        return None
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and left.args:
        left = left.args[0]
    return ast.unparse(left), f"{_HOLDING[operator]}{ast.unparse(right)}"
