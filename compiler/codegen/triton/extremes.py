"""Reductions to an extreme and its position, and values that are carried along with them.

    largest, at = tl.reduce((x, r0), 1, larger_at)        for argmax x, and for max x besides: one exchange of lanes

The positions that a lane meets in a loop grow, mostly from 0: then a lane that has found nothing yet may stand for the
first position. If all is the identity of the reduction, that is the answer; if not, the lane loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from compiler.schedule.program.program import Program, Statement

#: The plans whose printers take one reduction along with another.
_SHARING = ("persistent", "looped", "split")


def position_dtype(statement: Statement, by_number: Mapping[int, Statement]) -> torch.dtype:
    """Of the positions that a reduction finds."""
    return by_number[statement.operands[1]].dtype


def runs_from_the_first(statement: Statement, program: Program, by_number: Mapping[int, Statement]) -> bool:
    """Whether the positions that a lane meets begin at 0 or above it and grow from block to block, and 0 is the first
    of all."""
    position, loops = by_number[statement.operands[1]], program.space.r
    if position.op != "index_value" or position.index is None or len(loops) != 1:
        return False
    stride = position.index.stride(loops[0])
    is_of_r = position.index.dims == {loops[0]} and position.index.offset == 0
    return is_of_r and isinstance(stride, int) and stride > 0


def taken_along(reductions: Sequence[Statement], kind: str) -> Mapping[int, Statement]:
    """For each plain extreme that one of `reductions` finds too, that one, by the numbers of the plain ones."""
    if kind not in _SHARING:
        return {}
    finders = {(str(s.value), s.operands[0]): s for s in reductions if str(s.value).startswith("arg")}
    pairs = {s.number: finders.get((f"arg{s.value}", s.operands[0])) for s in reductions if s.dtype != torch.bool}
    return {number: finder for number, finder in pairs.items() if finder is not None}
