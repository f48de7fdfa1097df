"""Bounds on the values of a body, as far as they follow from its loops.

    v0 = index x0: float32         0 .. 127            where x0 < 128
    v1 = v0 * 0.25                 0 .. 31.75
    v2 = int64(v1)                 0 .. 31
    v3 = minimum v2, 31            the same as v2

What memory holds has no range. Ranges of floats are widened at each step by more than their rounding, so that whichever
way a device rounds, or joins a product and a sum, its values lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from compiler.ir.index_formulas import Step

Range = tuple[float, float]

#: Beyond these floats do not tell whole numbers apart.
_LARGEST = 2**50
#: Comparisons whose outcome may be known, and the difference of their operands, if these are whole numbers, from which
#: on it is another one than below.
COMPARISONS: Mapping[str, int] = {"ge": 0, "lt": 0, "gt": 1, "le": 1}
#: More than the rounding of one operation, relative to its result.
_WIDER: Mapping[torch.dtype, float] = {torch.float32: 1e-6, torch.float64: 1e-14}


def ranges_of(instructions: Sequence[Step]) -> list[Range | None]:
    """The smallest and the largest value of each instruction, both inclusive; None where nothing is known of it."""
    found: list[Range | None] = []
    for instruction in instructions:
        value = _range_of(instruction, found, instructions)
        if value is None and instruction.dtype == torch.bool:
            value = 0, 1
        is_small = value is not None and -_LARGEST <= value[0] <= value[1] <= _LARGEST
        found.append(_widened(value, instruction.dtype) if value is not None and is_small else None)
    return found


def _widened(value: Range, dtype: torch.dtype) -> Range | None:
    if not dtype.is_floating_point:
        return value
    share = _WIDER.get(dtype)
    if share is None:
        return None
    low, high = value
    return low - share * abs(low), high + share * abs(high)


def _range_of(i: Step, found: list[Range | None], steps: Sequence[Step]) -> Range | None:
    if i.op == "constant":
        return None if isinstance(i.value, str | None) or not math.isfinite(i.value) else (i.value, i.value)
    if i.op == "index_value":
        low, high = i.index.bounds if i.index is not None and not i.index.indirections else (None, None)
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None
    if i.op == "where":
        condition, chosen, other = (found[operand] for operand in i.operands)
        chosen = _where_it_holds(i.operands[0], i.operands[1], steps) or chosen
        return chosen if condition == (1, 1) else other if condition == (0, 0) else _either(chosen, other)
    if i.op not in _OF:
        return None
    operands = [value for operand in i.operands if (value := found[operand]) is not None]
    if len(operands) < len(i.operands):
        return None
    if i.op in COMPARISONS:
        return _OF[i.op](*_difference(i, steps) or operands)
    return _to_dtype(operands[0], i.dtype) if i.op == "to_dtype" else _OF[i.op](*operands)


def _difference(i: Step, steps: Sequence[Step]) -> tuple[Range, Range] | None:
    """Of two indices, which may grow with each other: their difference, to be compared with zero."""
    one, other = (steps[operand].index if steps[operand].op == "index_value" else None for operand in i.operands)
    low, high = (one - other).bounds if one is not None and other is not None else (None, None)
    return ((low, high), (0, 0)) if isinstance(low, int) and isinstance(high, int) else None


def _where_it_holds(mask: int, number: int, steps: Sequence[Step]) -> Range | None:
    """The range of a whole number, or of a float that is cut off to one, where a mask holds that bounds it from 0 or
    above to some constant."""
    if steps[number].dtype.is_floating_point:
        return None
    compared = {number, *(steps[number].operands if steps[number].op == "to_dtype" else ())}
    lows: list[float] = []
    ends: list[float] = []
    open_ = [mask]
    while open_:
        step = steps[open_.pop()]
        if step.op == "logical_and":
            open_ += step.operands
        elif step.op in ("ge", "lt") and step.operands[0] in compared:
            bound = steps[step.operands[1]].value if steps[step.operands[1]].op == "constant" else None
            if isinstance(bound, int | float) and math.isfinite(bound):
                (lows if step.op == "ge" else ends).append(bound)
    if not lows or not ends or max(lows) < 0 or min(ends) <= 0:
        return None
    low, end = math.floor(max(lows)), math.ceil(min(ends))
    return (low, end - 1) if low < end else None


def _either(a: Range | None, b: Range | None) -> Range | None:
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _to_dtype(value: Range, dtype: torch.dtype) -> Range | None:
    if dtype.is_floating_point:
        return value
    if dtype == torch.bool:
        return None
    low, high = math.trunc(value[0]), math.trunc(value[1])
    limits = torch.iinfo(dtype)
    return (low, high) if limits.min <= low and high <= limits.max else None


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Range, b: Range) -> Range | None:
    if b[0] <= 0 <= b[1]:
        return None
    corners = [x / y for x in a for y in b]
    return min(corners), max(corners)


def _whole_quotient(rounded: Callable[[float], int]) -> Callable[[Range, Range], Range | None]:
    """Of integers alone: of floats the rounding before it may reach the next whole number."""

    def quotient(a: Range, b: Range) -> Range | None:
        found = _quotient(a, b) if all(isinstance(number, int) for number in (*a, *b)) else None
        return None if found is None else (rounded(found[0]), rounded(found[1]))

    return quotient


def _remainder(a: Range, b: Range) -> Range | None:
    """With the sign of b."""
    return (0, b[1]) if b[0] > 0 else None


def _fmod(a: Range, b: Range) -> Range | None:
    """With the sign of a."""
    return (0, min(a[1], b[1])) if a[0] >= 0 and b[0] > 0 else None


def _growing(function: Callable[[float], float]) -> Callable[[Range], Range | None]:
    """A function that grows with its operand, from above zero on."""
    return lambda a: (function(a[0]), function(a[1])) if a[0] > 0 else None


def _is_below(a: Range, b: Range) -> Range:
    """Whether a < b, as the truth values 0 and 1."""
    return (1, 1) if a[1] < b[0] else (0, 0) if a[0] >= b[1] else (0, 1)


def _not(a: Range) -> Range:
    return 1 - a[1], 1 - a[0]


def _abs(a: Range) -> Range:
    return max(a[0], -a[1], 0), max(abs(a[0]), abs(a[1]))


_OF: Mapping[str, Callable[..., Range | None]] = {
    "to_dtype": _to_dtype,
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "truediv": _quotient,
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "neg": lambda a: (-a[1], -a[0]),
    "lt": _is_below,
    "gt": lambda a, b: _is_below(b, a),
    "ge": lambda a, b: _not(_is_below(a, b)),
    "le": lambda a, b: _not(_is_below(b, a)),
    "logical_and": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "logical_or": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "logical_not": _not,
    "abs": _abs,
    "square": lambda a: (_abs(a)[0] ** 2, _abs(a)[1] ** 2),
    "floordiv": _whole_quotient(math.floor),
    "truncdiv": _whole_quotient(math.trunc),
    "remainder": _remainder,
    "fmod": _fmod,
    "log": _growing(math.log),
    "log2": _growing(math.log2),
    "sqrt": _growing(math.sqrt),
    "floor": lambda a: (math.floor(a[0]), math.floor(a[1])),
    "ceil": lambda a: (math.ceil(a[0]), math.ceil(a[1])),
    "trunc": lambda a: (math.trunc(a[0]), math.trunc(a[1])),
}
