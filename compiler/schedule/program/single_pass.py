"""Two passes over a row as one: sums that are relative to a result of the pass before.

    pass 1   m = max x                           pass 1   m, t = the largest x, and the sum of exp(x - the largest)
    pass 2   s = sum of exp(x - m)      ->                s = t
    pass 1   a = (sum x) / n                     pass 1   sum x; b, q = mean of x, and the sum of (x - mean)^2
    pass 2   s = sum of (x - a)^2       ->                s = q + n (b - a)^2

The reduction on the right does not know what the one on the left is relative to: it goes by a number of its own, which
it finds on the way, and when the other one is known the result is moved to it by a formula that is exact. So neither
needs the other to be what it usually is (the largest, the mean). The first is the online softmax of Milakov and
Gimelshein (2018), the second the variance of data shifted by a sample, joined as by Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Literal

import torch

from compiler.ir.size import Integer
from compiler.schedule.group import Group
from compiler.schedule.program.program import Statement, closure, new_numbers
from compiler.schedule.program.statements import inlined, passes_before

Kind = Literal["exponentials", "squares"]

#: The values that a reduction of each kind makes: of `exponentials` the sum is relative to the largest, and that is the
#: least finite number where all are minus infinity; of `squares` it is relative to the mean.
FIELDS: dict[str, tuple[str, str]] = {"exponentials": ("largest", "total"), "squares": ("mean", "total")}


@dataclass(frozen=True)
class Relative:
    """The statement `number`, a sum over r of a function of `value - about`, where only `value` varies along r."""

    number: int
    kind: Kind
    value: int
    about: int


def relative_sums(statements: list[Statement]) -> list[Relative]:
    """The sums that need not wait for what they are relative to."""
    by_number = {s.number: s for s in statements}
    ready = passes_before(statements)
    found = (_relative(s, by_number) for s in statements if s.op == "reduce" and s.value == "sum")
    return [one for one in found if one is not None and ready[one.value] < ready[one.about]]


def _relative(sum_: Statement, by_number: dict[int, Statement]) -> Relative | None:
    term = by_number[sum_.operands[0]]
    kind: Kind = "exponentials" if term.op == "exp" else "squares"
    is_square = term.op == "square" or (term.op == "mul" and term.operands[0] == term.operands[1])
    difference = by_number[term.operands[0]] if term.op == "exp" or is_square else None
    if difference is None or difference.op != "sub" or not sum_.dtype.is_floating_point:
        return None
    value, about = difference.operands
    if is_square and by_number[value].level == "x":
        value, about = about, value
    if by_number[value].level != "r" or by_number[about].level != "x":
        return None
    return Relative(sum_.number, kind, value, about)


def relative_members(group: Group) -> dict[str, str]:
    """The members whose sums need not wait, each with the member whose result it is relative to."""
    if sum(member.body.reduction is not None for member in group.members) < 2 or group.has_scan:
        return {}
    statements = inlined(group)
    by_number = {s.number: s for s in statements}
    found: dict[str, str] = {}
    for one in relative_sums(statements):
        if one.kind == "squares" and not isinstance(group.space.reduction_numel, int):
            continue  # how many there are is a constant of the kernel
        waits_for = max(n for n in closure((one.about,), by_number) if by_number[n].op == "reduce")
        reader, writer = (_member(by_number[number], group) for number in (one.number, waits_for))
        found[reader] = writer
    return found


def _member(statement: Statement, group: Group) -> str:
    return next(node for node in statement.nodes if node in group.produced)


def in_single_pass(nodes: frozenset[str], count: Integer) -> Callable[[list[Statement]], list[Statement]]:
    """Rewrites the relative sums of `nodes`; a row has `count` elements."""

    def rewrite(statements: list[Statement]) -> list[Statement]:
        nodes_of = {s.number: s.nodes for s in statements}
        chosen = [one for one in relative_sums(statements) if not nodes.isdisjoint(nodes_of[one.number])]
        return _Rewriting(statements, chosen, count).result() if chosen else statements

    return rewrite


class _Rewriting:
    """Builds the new list: each statement that stays keeps its number, so that its readers find it."""

    def __init__(self, statements: list[Statement], chosen: list[Relative], count: Integer) -> None:
        self.old = statements
        self.by_number = {s.number: s for s in statements}
        self.relative = {one.number: one for one in chosen}
        self.count = count
        self.new: list[Statement] = []
        self.numbers = new_numbers(statements)
        #: The fields of each reduction that was added, by its kind and value.
        self.made: dict[tuple[str, int], tuple[int, int]] = {}
        self.exponents = {one.value for one in chosen if one.kind == "exponentials"}

    def result(self) -> list[Statement]:
        for s in self.old:
            one = self.relative.get(s.number)
            if one is not None:
                self._moved_exponentials(s, one) if one.kind == "exponentials" else self._moved_squares(s, one)
            elif s.op == "reduce" and s.value == "max" and s.operands[0] in self.exponents:
                self._largest(s)
            else:
                self.new.append(s)
        return self.new

    def _add(
        self, like: Statement, op: str, *operands: int, dtype: torch.dtype | None = None,
        value: float | str | None = None,
    ) -> int:  # fmt: skip
        number = next(self.numbers)
        self.new.append(Statement(number, "", op, operands, dtype or like.dtype, "x", like.nodes, value=value))
        return number

    def _last(self, like: Statement, op: str, *operands: int) -> None:
        """The statement that takes the place of `like`."""
        self.new.append(replace(like, op=op, operands=operands, value=None))

    def _fields(self, like: Statement, kind: Kind, value: int) -> tuple[int, int]:
        known = self.made.get((kind, value))
        if known is None:
            reduction = self._add(like, "reduce", value, value=kind)
            first, second = (self._add(like, "field", reduction, value=name) for name in FIELDS[kind])
            known = self.made[kind, value] = first, second
        return known

    def _largest(self, s: Statement) -> None:
        largest, total = self._fields(s, "exponentials", s.operands[0])
        nothing = self._add(s, "eq", total, self._add(s, "constant", value=0.0), dtype=torch.bool)
        self._last(s, "where", nothing, self._add(s, "constant", value=-inf), largest)

    def _moved_exponentials(self, s: Statement, one: Relative) -> None:
        """total * exp(largest - about), where the largest is finite. Where it is not, the total is no number, and the
        largest alone gives the sum: exp(-inf) for nothing but -inf, exp(inf), or nan if `about` is the same. A result
        of the row is -inf where there is -inf in the row (or where it overflows), which gives nan."""
        largest, total = self._fields(s, "exponentials", one.value)
        about = self.by_number[one.about]
        is_largest = about.op == "reduce" and about.value == "max" and about.operands == (one.value,)
        if is_largest:
            infinite = self._add(s, "isinf", one.about, dtype=torch.bool)
            self._last(s, "where", infinite, self._add(s, "constant", value=nan), total)
            return
        nothing = self._add(s, "eq", total, self._add(s, "constant", value=0.0), dtype=torch.bool)
        exact = self._add(s, "where", nothing, self._add(s, "constant", value=-inf), largest)
        moved = self._add(s, "exp", self._add(s, "sub", exact, one.about))
        infinite = self._add(s, "isinf", exact, dtype=torch.bool)
        finite = self._add(s, "where", infinite, self._add(s, "constant", value=1.0), total)
        sum_ = self._add(s, "mul", finite, moved)
        has_none = self._add(s, "eq", one.about, self._add(s, "constant", value=-inf), dtype=torch.bool)
        self._last(s, "where", has_none, self._add(s, "constant", value=nan), sum_)

    def _moved_squares(self, s: Statement, one: Relative) -> None:
        mean, total = self._fields(s, "squares", one.value)
        distance = self._add(s, "sub", mean, one.about)
        assert isinstance(self.count, int)
        points = self._add(s, "constant", value=float(self.count))
        self._last(s, "add", total, self._add(s, "mul", points, self._add(s, "square", distance)))
