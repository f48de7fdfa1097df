"""Indices that are made of conditions, as GCC 12 takes them: masked by one of which the compiler knows nothing.

    value = table[int64_t(x[i] != 0.0f) & every_bit]

Looking for the offset of a gather, its vectoriser looks through conversions, down to the condition itself, whose vector
holds bits and not the numbers 0 and 1; it would load from anywhere. The mask ends that search.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.schedule.program.program import Program, Statement

MASK = "every_bit"
DECLARATION = f"const int64_t {MASK} = fs::unknown(-1);"


def indices_of_conditions(program: Program) -> frozenset[int]:
    """Numbers of the statements that are used as an index and whose value may be that of a condition."""
    used = {indirect.value for s in program.statements if s.index is not None for indirect in s.index.indirections}
    return frozenset(number for number in used if _is_made_of_conditions(program.by_number, number))


def _is_made_of_conditions(statements: Mapping[int, Statement], number: int) -> bool:
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
