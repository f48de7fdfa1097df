"""Rows slightly longer than a power of two, without a tile of twice their size.

    for r < 33: s = sum x[r]             for r < 32: s' = sum x[r];   s = s' + x[32]
    for r < 33: y[r] = x[r] / s    ->    for r < 32: y[r] = x[r] / s;   y[32] = x[32] / s

The last elements of a row become values of the row, written out. On an H200 a layer norm of rows of 33 takes 91 us so,
173 with 31 of 64 lanes masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.index import Dim, Index
from compiler.ir.ops import RANDOM
from compiler.schedule.group import Group
from compiler.schedule.program.program import Statement
from compiler.schedule.unroll import JOINED_BY

#: The shortest row; lanes of a row for each element that is written out, and the most of those.
_SHORTEST, _LANES, _MOST = 17, 128, 4


@dataclass(frozen=True)
class RestApart:
    """Rewrites statements over the loop `whole` as ones over `main`, which is shorter, and copies for the rest."""

    whole: Dim
    main: Dim

    def rewrite(self, statements: list[Statement]) -> list[Statement]:
        assert isinstance(self.whole.size, int) and isinstance(self.main.size, int)
        number = 1 + max(s.number for s in statements)
        copies: list[dict[int, int]] = [{} for _ in range(self.main.size, self.whole.size)]
        result: list[Statement] = []
        for s in statements:
            main = replace(s, index=self._moved(s.index, {}, Index.of(self.main)))
            if s.op != "reduce" and s.level != "r":
                result.append(main)
                continue
            if s.op != "reduce":
                result.append(main)
                for place, numbers in enumerate(copies, start=self.main.size):
                    numbers[s.number] = number
                    operands = tuple(numbers.get(operand, operand) for operand in s.operands)
                    index = self._moved(s.index, numbers, Index.number(place))
                    result.append(replace(s, number=number, operands=operands, index=index, level="x"))
                    number += 1
                continue
            # All of it keeps the number by which others read it.
            result.append(replace(main, number=number))
            total, number = number, number + 1
            for place, numbers in enumerate(copies, start=self.main.size):
                is_last = place == self.whole.size - 1
                operands = (total, numbers.get(s.operands[0], s.operands[0]))
                joined = replace(s, number=s.number if is_last else number, op=JOINED_BY[str(s.value)])
                result.append(replace(joined, operands=operands, value=None))
                total, number = number, number + (not is_last)
        return result

    def _moved(self, index: Index | None, numbers: Mapping[int, int], place: Index) -> Index | None:
        if index is None:
            return None
        known = {number: numbers.get(number, number) for number in (i.value for i in index.indirections)}
        return index.renumber(known).substitute({self.whole: place})


def rest_apart(group: Group) -> RestApart | None:
    """How the last elements of the group's rows can be written out; None where they are many, or none."""
    if len(group.space.r) != 1 or group.has_scan or group.across or group.updated or group.single_pass:
        return None
    (whole,) = group.space.r
    if not isinstance(whole.size, int) or whole.size < _SHORTEST:
        return None
    main = 1 << whole.size.bit_length() - 1
    if not 0 < whole.size - main <= min(max(main // _LANES, 1), _MOST):
        return None
    instructions = [i for member in group.members for i in member.body.instructions]
    if any(i.op in RANDOM or (i.op == "reduce" and str(i.value) not in JOINED_BY) for i in instructions):
        return None
    if any(member.node.is_scatter for member in group.members):
        return None
    return RestApart(whole, replace(whole, size=main))
