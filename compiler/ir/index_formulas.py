"""Recognise values of a body that are formulas of its loop variables.

    v0 = index x0                      a roll by 62 of 64 elements, as its definition reads:
    v1 = add v0, 62                    x.index_select(0, (arange + 62) % 64)
    v2 = remainder v1, 64
    v3 = where (lt v2, 0) (add v2, 64) v2
    load x[v3]           ->            load x[(x0 + 62) % 64]

An index that is known as a formula is no loaded one: its bounds need no instructions, what it reads can be fused with
its maker, and lanes that read neighbours are seen to do so. Only integers whose every step stays within their dtype
are taken, so that nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from compiler.ir.index import Index, floor_divide, modulo
from compiler.ir.size import Integer, Undecided, is_below

#: A longer way from the loop variables to the index is not followed.
MOST_STEPS = 64
#: More than any index is.
LARGEST_INDEX = torch.iinfo(torch.int64).max
#: Dtypes whose values may be indices.
_INTEGERS = (torch.int32, torch.int64)


class Step(Protocol):
    """What is asked of an instruction; see `compiler.ir.body.Instruction`."""

    @property
    def op(self) -> str: ...
    @property
    def operands(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def index(self) -> Index | None: ...
    @property
    def value(self) -> bool | int | float | str | None: ...


def formula_of_index(number: int, size: Integer, steps: Sequence[Step]) -> Index | None:
    """The value of step `number` as a formula of loop variables, or None where it is none, or may leave
    0 <= value < `size`."""
    formula = formula_of_step(number, steps)
    return formula if formula is not None and formula.is_within(0, size) else None


def formula_of_step(number: int, steps: Sequence[Step]) -> Index | None:
    """The value of step `number` as a formula of loop variables, or None where it is none."""
    try:
        return _Reader(steps).formula(number)
    except Undecided:
        return None


class _Reader:
    """Reads the steps of one body, back from a value."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._known: dict[int, Index | None] = {}

    def formula(self, number: int) -> Index | None:
        if number not in self._known:
            if len(self._known) > MOST_STEPS:
                return None
            self._known[number] = None  # while it is being read
            found = self._read(self._steps[number])
            self._known[number] = found
        return self._known[number]

    def _read(self, step: Step) -> Index | None:
        if step.dtype not in _INTEGERS:
            return None
        found = self._unbounded(step)
        limits = torch.iinfo(step.dtype)
        return found if found is not None and found.is_within(limits.min, limits.max) else None

    def _unbounded(self, step: Step) -> Index | None:
        if step.op == "constant":
            return Index.number(step.value) if isinstance(step.value, int) else None
        if step.op == "index_value":
            return step.index if step.index is not None and not step.index.indirections else None
        if step.op == "where":
            truth = self._truth(step.operands[0])
            return None if truth is None else self.formula(step.operands[1 if truth else 2])
        if step.op == "to_dtype":
            return self.formula(step.operands[0])
        rule = _RULES.get(step.op)
        if rule is None:
            return None
        values = [self.formula(operand) for operand in step.operands]
        known = [value for value in values if value is not None]
        return rule(*known) if len(known) == len(values) else None

    def _truth(self, number: int) -> bool | None:
        """Whether a comparison holds everywhere, or nowhere; None where neither is known."""
        step = self._steps[number]
        if step.op == "logical_and":
            truths = {self._truth(operand) for operand in step.operands}
            return False if False in truths else None if None in truths else True
        rule = _COMPARISONS.get(step.op)
        if rule is None or self._steps[step.operands[0]].dtype not in _INTEGERS:
            return None
        a, b = (self.formula(operand) for operand in step.operands)
        return None if a is None or b is None else rule(a, b)


def _is_less(a: Index, b: Index) -> bool | None:
    least, most = (a - b).bounds
    return True if is_below(most, 0) else False if is_below(-1, least) else None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _is_at_most(a: Index, b: Index) -> bool:
    """Whether a <= b is known to hold everywhere."""
    return is_below((a - b).bounds[1], 1)


def _lower(a: Index, b: Index) -> Index | None:
    return a if _is_at_most(a, b) else b if _is_at_most(b, a) else None


def _higher(a: Index, b: Index) -> Index | None:
    return b if _is_at_most(a, b) else a if _is_at_most(b, a) else None


def _times(a: Index, b: Index) -> Index | None:
    factor, other = (a, b) if not a.terms else (b, a)
    return None if factor.terms else other * factor.offset


def _by_number(divide: Callable[[Index, Integer], Index]) -> Callable[[Index, Index], Index | None]:
    return lambda a, b: None if b.terms or not is_below(0, b.offset) else divide(a, b.offset)


def _where_not_negative(rule: Callable[[Index, Index], Index | None]) -> Callable[[Index, Index], Index | None]:
    """A division that rounds towards zero is one that floors where nothing negative is divided."""
    return lambda a, b: rule(a, b) if is_below(-1, a.bounds[0]) else None


_RULES: dict[str, Callable[..., Index | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: a * -1,
    "mul": _times,
    "floordiv": _by_number(floor_divide),
    "remainder": _by_number(modulo),
    "truncdiv": _where_not_negative(_by_number(floor_divide)),
    "fmod": _where_not_negative(_by_number(modulo)),
    "minimum": _lower,
    "maximum": _higher,
}

_COMPARISONS: dict[str, Callable[[Index, Index], bool | None]] = {
    "lt": _is_less,
    "gt": lambda a, b: _is_less(b, a),
    "le": lambda a, b: _not(_is_less(b, a)),
    "ge": lambda a, b: _not(_is_less(a, b)),
}
