"""Tiles of windows, which each lane goes over by itself.

looped       of long ones, some of which a lane goes over at a time, with a sum for each of them in registers
pointwise    of those along long rows, where what windows are multiplied by is the same for a whole row: a row, or a
             part of it, is a program, which loads these numbers once and not for every lane
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch

from compiler.codegen.program import Program
from compiler.codegen.triton.plan import Axis, Plan, next_power_of_two
from compiler.codegen.triton.short_forms import short_program
from compiler.codegen.triton.walk import Access, accesses_of, fastest, unit_bytes, with_last
from compiler.ir.size import hint
from compiler.schedule.group import Group, Space

#: Bytes that a thread of a loop loads at once, and its warps.
_BYTES_AT_ONCE, _WARPS = 8, 2
#: Numbers that are the same along a row, at the least; the elements of a row; and those of a program, with its warps:
#: few of each thread, as what lies one element off is loaded element by element.
_SAME, _LONG_ROW, _ROW_BLOCK, _ROW_WARPS = 3, 512, 512, 8


def plan_windows(group: Group, storage: dict[str, torch.dtype]) -> Plan:
    """The plan for windows that are written out but for the loop that the group has."""
    program, accesses = _along_memory(group, storage)
    itemsize = min((access.itemsize for access in accesses), default=4)
    block = 32 * _WARPS * max(_BYTES_AT_ONCE // itemsize, 1)
    block = min(block, next_power_of_two(max(hint(program.space.numel), 1)))
    axes = (Axis("x", program.space.x, block), Axis("r", program.space.r, 1))
    return Plan("looped", program, axes, max(1, min(_WARPS, block // 32)))


def plan_rows_of_windows(group: Group, storage: dict[str, torch.dtype]) -> Plan | None:
    """The plan for windows along rows that are long and share numbers; None where they are none."""
    if len(group.space.x) < 2:
        return None
    program, _ = _along_memory(group, storage)
    *rest, row = program.space.x
    loads = [s for s in program.statements if s.op == "load" and s.index is not None and not s.index.indirections]
    same = [load for load in loads if load.index is not None and row not in load.index.dims]
    most = max(Counter(load.buffer for load in loads if load not in same).values(), default=0)
    if hint(row.size) < _LONG_ROW or len(same) < _SAME or most < 2:
        return None
    block = min(_ROW_BLOCK, next_power_of_two(hint(row.size)))
    axes = (Axis("y", tuple(rest), 1, is_scalar=True), Axis("x", (row,), block))
    return Plan("pointwise", program, axes, _ROW_WARPS)


def _along_memory(group: Group, storage: dict[str, torch.dtype]) -> tuple[Program, list[Access]]:
    """The program with the loop last along which memory lies."""
    program = short_program(group, storage)
    accesses = accesses_of(program)
    dims = with_last(group.space.x, fastest(group.space.x, unit_bytes(accesses, group.space.x)))
    return replace(program, space=Space(dims, group.space.r)), accesses
