"""Simplify conditions whose outcome is known where they stand.

    a = where m, x, 0;  b = relu a;  c = where m, b, -inf        ->        b = relu x;  c = where m, b, -inf
    m = 2*x0 + 1 >= 0;  a = load b[2*x0 + 1] where m             ->        a = load b[2*x0 + 1]

A mask comes with every body that is computed inside another one, so nested ones repeat it: what only a choice by `m`
reads may be anything where `m` does not hold. And of a window that is written out most elements are in the image
wherever the window lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from compiler.ir.body import Body, drop_dead, moved, operands_of
from compiler.ir.index import Index
from compiler.ir.index_formulas import Step
from compiler.ir.ranges import COMPARISONS, Range, ranges_of

#: The positions of the operands of a choice.
_MASK, _CHOSEN, _OTHER = 0, 1, 2

#: What joins two conditions, and all whose outcome may be known.
_JOINING = ("logical_and", "logical_or")
_CONDITIONS = frozenset((*COMPARISONS, *_JOINING, "logical_not"))


@dataclass
class Known:
    """What is known of numbered instructions: others that have the `same` value, the outcomes of conditions, and loads
    that need no mask."""

    same: dict[int, int] = field(default_factory=dict)
    outcomes: dict[int, bool] = field(default_factory=dict)
    unmasked: set[int] = field(default_factory=set)
    #: Indices that are formulas of the loops.
    indices: dict[int, Index] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.same or self.unmasked or self.indices)

    def replace(self, number: int, value: int) -> None:
        self.same[number] = self.same.get(value, value)

    def operands_of(self, number: int, i: Step) -> tuple[int, ...]:
        operands = () if number in self.unmasked else i.operands
        return tuple([self.same.get(operand, operand) for operand in operands])

    def index_of(self, i: Step) -> Index | None:
        if i.index is None or not i.index.indirections:
            return i.index
        return i.index.renumber(_Same(self.same)).with_indices(self.indices)


class _Same(dict[int, int]):
    def __missing__(self, number: int) -> int:
        return number


def without_repeated_choices(body: Body) -> Body:
    """The body without choices by a mask of what is used only where that mask holds."""
    holds, known = masks_that_hold(body.instructions), Known()
    for number, i in enumerate(body.instructions):
        if i.op == "where" and i.operands[_MASK] in holds[number]:
            known.replace(number, i.operands[_CHOSEN])
    return _in_place(body, known)


def without_known_conditions(body: Body) -> Body:
    """The body without comparisons and bounds of numbers that lie on one side of them wherever they are computed, and
    without what hangs on these."""
    return _in_place(body, known_values(body.instructions))


def _in_place(body: Body, known: Known) -> Body:
    if not known:
        return body
    instructions = [
        moved(i, known.operands_of(number, i), known.index_of(i), i.node) for number, i in enumerate(body.instructions)
    ]
    return drop_dead(Body(tuple(instructions)))


def known_values(instructions: Sequence[Step]) -> Known:
    """What is known of instructions by the ranges of what they are computed from."""
    ranges, known = ranges_of(instructions), Known()
    outcomes, indices = known.outcomes, dict[int, Index]()
    for number, i in enumerate(instructions):
        truth = ranges[number]
        value: int | None = None
        if i.op in _CONDITIONS and i.dtype == torch.bool and truth is not None and truth[0] == truth[1]:
            outcomes[number] = bool(truth[0])
        elif i.op in ("minimum", "maximum"):
            value = _extreme(i, ranges)
        elif i.op == "abs":
            found = ranges[i.operands[0]]
            value = i.operands[0] if found is not None and found[0] >= 0 else None
        elif i.op == "sub":
            value = _back(i, instructions, known)
        elif i.op == "index_value" and i.index is not None and not i.index.indirections:
            indices[number] = i.index
        elif i.op == "where":
            value = _chosen(i, instructions, outcomes)
        elif i.op == "load" and i.operands and outcomes.get(i.operands[0]):
            known.unmasked.add(number)
        elif i.op in _JOINING and i.dtype == torch.bool:
            rest = [operand for operand in i.operands if operand not in outcomes]
            value = rest[0] if len(rest) == 1 else None
        if value is not None:
            known.replace(number, value)
    used = {atom.value for i in instructions if i.index is not None for atom in i.index.indirections}
    needed = {known.same.get(number, number) for number in used}
    known.indices = {number: index for number, index in indices.items() if number in needed}
    return known


def _chosen(i: Step, instructions: Sequence[Step], outcomes: dict[int, bool]) -> int | None:
    """What a choice comes to, where that is known: by its mask, or since both are the same."""
    mask, chosen, other = i.operands
    if mask in outcomes:
        return chosen if outcomes[mask] else other
    one, instead = instructions[chosen], instructions[other]
    if instead.op != "constant" or instead.value != 0 or repr(instead.value) == "-0.0":
        return None
    if one.op == "constant" and one.value is True and i.dtype == torch.bool:
        return mask
    # A load gives zero where its mask does not hold.
    return chosen if one.op == "load" and one.operands == (mask,) else None


def _back(i: Step, instructions: Sequence[Step], known: Known) -> int | None:
    """Of whole numbers, a of `c - (c - a)`."""
    first, second = known.operands_of(-1, i)
    inner = instructions[second]
    if i.dtype.is_floating_point or inner.op != "sub":
        return None
    number, a = known.operands_of(-1, inner)
    return a if number == first else None


def _extreme(i: Step, ranges: Sequence[Range | None]) -> int | None:
    """The operand that is always the smaller or larger of two, if there is one."""
    a, b = (ranges[operand] for operand in i.operands)
    if a is None or b is None:
        return None
    if a[1] <= b[0] or b[1] <= a[0]:
        is_first = (a[1] <= b[0]) == (i.op == "minimum")
        return i.operands[0 if is_first else 1]
    return None


def masks_that_hold(steps: Sequence[Step]) -> list[frozenset[int]]:
    """For each step the masks that hold wherever its value is used."""
    found: list[frozenset[int] | None] = [None] * len(steps)

    def used(number: int, masks: frozenset[int]) -> None:
        before = found[number]
        found[number] = masks if before is None else before & masks

    def passes_on(i: Step) -> bool:
        # A reduction's or a store's value is one of all points, an address is needed to be one everywhere, and a
        # processor stops at a division by an integer zero.
        is_division = i.op in ("floordiv", "truncdiv", "remainder", "fmod") and not i.dtype.is_floating_point
        return not is_division and i.op not in ("store", "reduce", "scan", "across", "load", "indirect")

    nothing = frozenset[int]()
    for number in reversed(range(len(steps))):
        i = steps[number]
        here = (found[number] or nothing) if passes_on(i) else nothing
        for position, operand in enumerate(i.operands):
            is_chosen = i.op == "where" and position == _CHOSEN
            used(operand, here | {i.operands[_MASK]} if is_chosen else here)
        for operand in operands_of(i) - set(i.operands):
            used(operand, nothing)
    return [masks or nothing for masks in found]
