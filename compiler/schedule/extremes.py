"""Write out the position of the largest or smallest of a few values.

    best, at = v0, 0;  for each of the others: ahead = v > best;  best, at = where(ahead, (v, i), (best, at))

NaN comes before all numbers, and of equals the one at the lowest position is the one. Where positions ascend, as those
in a window do, no two of them are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from compiler.ir.body import Instruction, Written
from compiler.ir.index import Index
from compiler.ir.ops import identity_of
from compiler.ir.size import is_below

#: The comparison that holds where a value is no better than the best one so far.
_NO_BETTER = {"argmax": "le", "argmin": "ge"}


class WrittenOut(Written):
    """A reduction that is written out."""

    def test(self, op: str, *operands: int) -> int:
        return self.add(Instruction(op, operands, torch.bool))

    def choice(self, condition: int, yes: int, no: int) -> int:
        return self.add(Instruction("where", (condition, yes, no), self.instructions[yes].dtype))


def position_of_best(out: WrittenOut, kind: str, terms: Sequence[tuple[int, int]]) -> int:
    """The number of the position of the best of `terms`, pairs of a value and its position; `kind` is "argmax" or
    "argmin"."""
    masks = _masks_of_ascending(out, kind, terms)
    (best, at), *rest = terms
    seen = masks[0] if masks is not None else None
    for number, (value, position) in enumerate(rest, start=1):
        is_ahead = _is_better(out, kind, value, best)
        if masks is None:
            is_ahead = out.test("logical_or", is_ahead, _is_equal_before(out, (value, position), (best, at)))
        elif seen is not None:  # the first that counts does, whatever its value
            is_ahead = out.test("logical_or", is_ahead, out.test("logical_not", seen))
            mask = masks[number]
            seen = None if mask is None else out.test("logical_or", seen, mask)
        best, at = out.choice(is_ahead, value, best), out.choice(is_ahead, position, at)
    return at


def _is_better(out: WrittenOut, kind: str, value: int, best: int) -> int:
    """Whether a value is better than the best one so far, or NaN where that is none."""
    is_better = out.test("logical_not", out.test(_NO_BETTER[kind], value, best))
    is_float = out.instructions[value].dtype.is_floating_point
    return out.test("logical_and", is_better, out.test("eq", best, best)) if is_float else is_better


def _is_equal_before(out: WrittenOut, term: tuple[int, int], best: tuple[int, int]) -> int:
    """Whether a value equals the best one so far, or is NaN as well, at a lower position."""
    (value, position), (best_value, at) = term, best
    is_equal = out.test("eq", value, best_value)
    if out.instructions[value].dtype.is_floating_point:
        are_nan = out.test("logical_and", out.test("ne", value, value), out.test("ne", best_value, best_value))
        is_equal = out.test("logical_or", is_equal, are_nan)
    return out.test("logical_and", is_equal, out.test("lt", position, at))


def _masks_of_ascending(out: WrittenOut, kind: str, terms: Sequence[tuple[int, int]]) -> list[int | None] | None:
    """The conditions under which terms count, None for those that always do; None where positions do not ascend, or
    where what does not count is not behind everything that does."""
    found = [_index_and_mask(out, kind, value, position) for value, position in terms]
    indices = [index for pair in found if pair is not None and (index := pair[0]) is not None]
    ascends = all(is_below(0, (after - before).bounds[0]) for before, after in pairwise(indices))
    return [pair[1] for pair in found if pair is not None] if ascends and len(indices) == len(terms) else None


def _index_and_mask(out: WrittenOut, kind: str, value: int, position: int) -> tuple[Index, int | None] | None:
    chosen, worth = out.instructions[position], out.instructions[value]
    if chosen.op == "index_value" and chosen.index is not None:
        return chosen.index, None
    if chosen.op != "where" or worth.op != "where" or chosen.operands[0] != worth.operands[0]:
        return None
    mask, inside, outside = chosen.operands
    here, nowhere, nothing = out.instructions[inside], out.instructions[outside], out.instructions[worth.operands[2]]
    if here.op != "index_value" or here.index is None or nowhere.op != "constant":
        return None
    is_behind = isinstance(nowhere.value, int) and is_below(here.index.bounds[1], nowhere.value)
    is_worst = nothing.op == "constant" and nothing.value == identity_of(kind.removeprefix("arg"), nothing.dtype)
    return (here.index, mask) if is_behind and is_worst else None
