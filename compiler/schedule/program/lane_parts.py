"""Divide a short row among a few lanes: each lane joins its own elements first.

    for r < 49: s = sum x[r]             for r < 8: s = sum of x[r] + x[r + 8] + ... + (x[r + 48] if r < 1 else 0)
    for r < 49: y[r] = x[r] / s    ->    for r < 8: y[r] = x[r] / s;  ...;  y[r + 48] = x[r + 48] / s if r < 1

Rows that begin anywhere are loaded one element by each lane, and a whole warp for a row is five steps from lane to lane
for every sum of it. Eight lanes are three, for four rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from compiler.ir.index import Dim, Index
from compiler.ir.ops import RANDOM, identity_of
from compiler.ir.size import known
from compiler.schedule.group import Group
from compiler.schedule.program.program import Statement, new_numbers
from compiler.schedule.unroll import JOINED_BY


def in_lane_parts(statements: Sequence[Statement], whole: Dim, lanes: Dim) -> list[Statement]:
    """The statements over the loop `whole` as ones over `lanes`, which is shorter, for each part of it."""
    return _Rewriting(statements, whole, lanes).result


class _Rewriting:
    def __init__(self, statements: Sequence[Statement], whole: Dim, lanes: Dim) -> None:
        length, size = known(whole.size), known(lanes.size)
        self.whole, self.lanes, self.size = whole, lanes, size
        self.numbers = new_numbers(statements)
        self.result: list[Statement] = []
        count = -(-length // size)
        #: What stands for each statement of level r in each part.
        self.parts: list[dict[int, int]] = [{} for _ in range(count)]
        rest = length - (count - 1) * size
        self.mask = self._mask(statements[0], rest) if rest < size else None
        for s in statements:
            if s.op == "reduce":
                self._add_reduction(s)
            elif self._is_of_parts(s):
                for part, numbers in enumerate(self.parts):
                    self._add_part(s, part, numbers)
            else:
                self.result.append(s)

    def _mask(self, model: Statement, rest: int) -> int:
        """Whether a lane has an element of the last part."""
        plain = replace(model, operands=(), buffer=None, index=None, value=None, level="r", dtype=torch.int64)
        lane = replace(plain, number=next(self.numbers), op="index_value", index=Index.of(self.lanes))
        bound = replace(plain, number=next(self.numbers), op="constant", value=rest, level="x")
        operands = (lane.number, bound.number)
        below = replace(plain, number=next(self.numbers), op="lt", operands=operands, dtype=torch.bool)
        self.result += [lane, bound, below]
        return below.number

    def _is_of_parts(self, s: Statement) -> bool:
        """Whether there is one for each part: the values of the loop, and what becomes of sums of them over x."""
        follows = any(operand in self.parts[0] for operand in s.operands)
        is_along = s.index is not None and self.whole in s.index.dims
        return s.level == "r" or (s.level == "tail" and (follows or is_along))

    def _add_part(self, s: Statement, part: int, numbers: dict[int, int]) -> None:
        numbers[s.number] = s.number if part == 0 else next(self.numbers)
        operands = tuple(numbers.get(operand, operand) for operand in s.operands)
        mask = self.mask if part == len(self.parts) - 1 else None
        if mask is not None and s.op == "load":
            operands = (self._both(s, mask, operands[0]),) if operands else (mask,)
        elif mask is not None and s.op == "store":
            operands = (*operands, mask)
        index = None if s.index is None else self._moved(s.index, numbers, Index.of(self.lanes) + part * self.size)
        self.result.append(replace(s, number=numbers[s.number], operands=operands, index=index))

    def _both(self, model: Statement, one: int, other: int) -> int:
        both = replace(
            model, number=next(self.numbers), op="logical_and", operands=(one, other), dtype=torch.bool, buffer=None,
            index=None, value=None,
        )  # fmt: skip
        self.result.append(both)
        return both.number

    def _add_reduction(self, s: Statement) -> None:
        values = [numbers.get(s.operands[0], s.operands[0]) for numbers in self.parts]
        plain = replace(s, value=None, level="r")
        if self.mask is not None:
            nothing = replace(plain, number=next(self.numbers), op="constant", operands=(), level="x")
            nothing = replace(nothing, value=identity_of(str(s.value), s.dtype))
            operands = (self.mask, values[-1], nothing.number)
            kept = replace(plain, number=next(self.numbers), op="where", operands=operands)
            self.result += [nothing, kept]
            values[-1] = kept.number
        while len(values) > 1:
            values = list(self._joined(plain, JOINED_BY[str(s.value)], values))
        self.result.append(replace(s, operands=(values[0], *s.operands[1:])))

    def _joined(self, plain: Statement, op: str, values: Sequence[int]) -> Iterator[int]:
        """Neighbours joined in pairs."""
        for first in range(0, len(values) - 1, 2):
            number = next(self.numbers)
            self.result.append(replace(plain, number=number, op=op, operands=(values[first], values[first + 1])))
            yield number
        if len(values) % 2:
            yield values[-1]

    def _moved(self, index: Index, numbers: Mapping[int, int], lane: Index) -> Index:
        moved = {number: numbers.get(number, number) for number in (i.value for i in index.indirections)}
        return index.renumber(moved).substitute({self.whole: lane})


def may_be_in_parts(group: Group) -> bool:
    """Whether rows of the group, which are one loop, may be in parts: what is reduced must be joined in any order."""
    if group.has_scan or group.updated or group.single_pass or group.has_check:
        return False
    instructions = [i for member in group.members for i in member.body.instructions]
    if any(i.op in RANDOM or (i.op == "reduce" and str(i.value) not in JOINED_BY) for i in instructions):
        return False
    return not any(member.node.is_scatter for member in group.members)
