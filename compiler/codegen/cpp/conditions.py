"""Conditions as GCC 12 takes them well.

Comparisons of positions are written with as few loop variables as they depend on. What does not depend on the vector
loop's variable is no mask there: the compiler makes one loop for each outcome.

    64 * x2 + x3 >= 64    with x3 < 64    is    x2 >= 1

And an index that is made of conditions is masked by ones of which the compiler knows nothing:

    value = table[int64_t(x[i] != 0.0f) & every_bit]

Looking for the offset of a gather, its vectoriser looks through conversions, down to the condition itself, whose vector
holds bits and not the numbers 0 and 1; it would load from anywhere. The mask ends that search.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.ir.index import Index
from compiler.schedule.program.program import Program, Statement

#: Each comparison with a whole number, as one of an index that is at least, or is below, `number + step`.
_COMPARISONS: Mapping[str, tuple[str, int]] = {"ge": (">=", 0), "lt": ("<", 0), "gt": (">=", 1), "le": ("<", 1)}


def comparison(statement: Statement, statements: Mapping[int, Statement]) -> tuple[Index, str, int] | None:
    """The index, operator and number of a comparison that depends on fewer variables than it is written with."""
    if statement.op not in _COMPARISONS:
        return None
    position, number = (statements[operand] for operand in statement.operands)
    if position.op != "index_value" or position.index is None or number.op != "constant":
        return None
    operator, step = _COMPARISONS[statement.op]
    assert isinstance(number.value, int)
    found = _of_fewer(position.index, number.value + step)
    return None if found is None else (found[0], operator, found[1])


def _of_fewer(index: Index, limit: int) -> tuple[Index, int] | None:
    """`index >= limit` as another such comparison, without the terms that cannot decide it:

    g * a + b >= limit  is  a >= ceil((limit - b) / g),  where that is one number for all b
    """
    factors = [factor for _, factor in index.terms]
    if not index.is_affine or not all(isinstance(number, int) for number in index.sizes):
        return None
    for divisor in sorted({abs(factor) for factor in factors}, reverse=True):
        large = tuple((atom, factor // divisor) for atom, factor in index.terms if factor % divisor == 0)
        small = Index(index.offset, tuple(term for term in index.terms if term[1] % divisor != 0))
        low, high = small.bounds
        if small.terms and large and isinstance(low, int) and isinstance(high, int):
            bound = (limit - low + divisor - 1) // divisor
            if isinstance(bound, int) and bound == (limit - high + divisor - 1) // divisor:
                return Index(0, large), bound
    return None


MASK = "every_bit"
DECLARATION = f"const int64_t {MASK} = fs::unknown(-1);"


def indices_of_conditions(program: Program) -> frozenset[int]:
    """Numbers of the statements that are used as an index and whose value may be that of a condition."""
    statements = {s.number: s for s in program.statements}
    used = {indirect.value for s in program.statements if s.index is not None for indirect in s.index.indirections}
    return frozenset(number for number in used if _is_made_of_conditions(statements, number))


def _is_made_of_conditions(statements: dict[int, Statement], number: int) -> bool:
    """Whether a condition became a number on the way, other than in memory."""
    seen: set[int] = set()
    open_ = [number]
    while open_:
        statement = statements[open_.pop()]
        if statement.number in seen or statement.op == "load":
            continue
        seen.add(statement.number)
        operands = [statements[operand] for operand in statement.operands]
        if statement.op == "to_dtype" and operands[0].dtype == torch.bool:
            return True
        if statement.op == "where" and all(operand.op == "constant" for operand in operands[1:]):
            return True
        if statement.op == "sign":
            return True
        open_ += statement.operands
    return False
