"""Keep the exponentials that a cooperative reduction has summed for what follows the exchange.

    total = sum of exp(x - own largest)              total = sum of kept,  kept = exp(x - own largest)
    ... all totals as one, and the largest of all    ...                   factor = exp(own largest - largest)
    result = exp(x - largest) / total          ->    result = kept * (factor / total)

The exponentials take the registers of the row. An exponential is some ten instructions for each element, and so is a
division. Where a part of the row has an infinity or no number, kept, factor or total is what makes the result no
number, as it would be either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.schedule.program.program import Program, Statement, readers_of


@dataclass(frozen=True)
class Kept:
    """The reductions whose exponentials are kept; by the number of each statement that is one of them again, its
    reduction; likewise for quotients by a number of the row; and the differences that nobody reads any more."""

    reductions: frozenset[int]
    exponentials: Mapping[int, Statement]
    quotients: Mapping[int, Statement]
    unread: frozenset[int]


def kept_exponentials(program: Program) -> Kept:
    """Which exponentials and quotients of a team's program are the same as those in its sums."""
    statements = [s for section in program.sections for s in section.statements]
    by_number, readers = {s.number: s for s in statements}, readers_of((*statements, *program.tail))
    exponentials = {s.number: reduction for s in statements if (reduction := _summed_in(s, by_number)) is not None}
    quotients: dict[int, Statement] = {}
    for number in [*exponentials]:
        if readers[number] and all(_is_quotient(s, number, by_number) for s in readers[number]):
            quotients |= {s.number: exponentials[number] for s in readers[number]}
    unread = {by_number[number].operands[0] for number in exponentials}
    unread = {n for n in unread if all(s.number in exponentials for s in readers[n])}
    alone = {n for n in exponentials if readers[n] and all(s.number in quotients for s in readers[n])}
    return Kept(
        frozenset(reduction.number for reduction in exponentials.values()),
        {number: reduction for number, reduction in exponentials.items() if number not in alone},
        quotients,
        frozenset(unread | alone),
    )


def _summed_in(s: Statement, by_number: Mapping[int, Statement]) -> Statement | None:
    """The reduction that sums the same exponentials, relative to its largest value."""
    difference = by_number.get(s.operands[0]) if s.op in ("exp", "quick_exp") else None
    if difference is None or difference.op != "sub":
        return None
    value, about = (by_number.get(number) for number in difference.operands)
    field = by_number.get(about.operands[2]) if about is not None and about.op == "where" else None
    if field is None or field.op != "field" or field.value != "largest":
        return None
    reduction = by_number[field.operands[0]]
    is_same = value is not None and reduction.operands == (value.number,)
    return reduction if is_same and reduction.value == "exponentials" and s.dtype == reduction.dtype else None


def _is_quotient(s: Statement, number: int, by_number: Mapping[int, Statement]) -> bool:
    is_division = s.op in ("truediv", "quick_truediv") and s.operands[0] == number != s.operands[1]
    return is_division and by_number[s.operands[1]].level == "x"
