"""Which values fail a comparison, in words: `4 <= x.size(0)` fails for `x.size(0)` below 4."""

from __future__ import annotations

import ast

#: What a value on the left of the operator is like when the comparison fails, and when it holds.
_WORDS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("other than", ""),
    ast.Is: ("other than", ""),
    ast.NotEq: ("equal to", "not "),
    ast.IsNot: ("equal to", "not "),
    ast.Lt: ("of at least", "below "),
    ast.LtE: ("above", "at most "),
    ast.Gt: ("of at most", "above "),
    ast.GtE: ("below", "at least "),
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_ENDS = (ast.Lt, ast.LtE)


def fails_comparison(code: str) -> str | None:
    """The values for which one comparison does not hold, such as "`n` other than 6"; None for any other code."""
    parsed = _comparison(code)
    if parsed is not None and len(parsed.ops) == 2 and all(isinstance(op, _ENDS) for op in parsed.ops):
        middle = parsed.comparators[0]
        return f"`{ast.unparse(middle)}` outside of `{ast.unparse(parsed)}`" if not _is_constant(middle) else None
    sides = _sides(parsed)
    if sides is None:
        return None
    left, operator, right = sides
    limit = ast.unparse(right)
    return f"`{ast.unparse(left)}` {_WORDS[operator][0]} {limit if _is_constant(right) else f'`{limit}`'}"


def compared_value(code: str) -> tuple[str, str] | None:
    """(what, with what) of a comparison with a constant: ("n", "6") of `n == 6`, ("n", "at least 4") of `4 <= n`."""
    sides = _sides(_comparison(code))
    if sides is None or not _is_constant(sides[2]):
        return None
    left, operator, right = sides
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and left.args:
        left = left.args[0]
    return ast.unparse(left), f"{_WORDS[operator][1]}{ast.unparse(right)}"


def _comparison(code: str) -> ast.Compare | None:
    try:
        parsed = ast.parse(code, mode="eval").body
    except SyntaxError:
        return None
    return parsed if isinstance(parsed, ast.Compare) else None


def _sides(parsed: ast.Compare | None) -> tuple[ast.expr, type[ast.cmpop], ast.expr] | None:
    """Of one comparison, turned so that a constant is on its right."""
    if parsed is None or len(parsed.ops) != 1 or type(parsed.ops[0]) not in _WORDS:
        return None
    left, operator, right = parsed.left, type(parsed.ops[0]), parsed.comparators[0]
    return (right, _MIRRORED.get(operator, operator), left) if _is_constant(left) else (left, operator, right)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
