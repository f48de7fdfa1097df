"""Tiles of long windows, some of which a lane goes over at a time, with a sum for each of them in registers."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.triton.fast_math import fast_program
from compiler.codegen.triton.plan import Axis, Plan, next_power_of_two
from compiler.codegen.triton.walk import accesses_of, fastest, unit_bytes, with_last
from compiler.ir.size import hint
from compiler.schedule.group import Group, Space

#: Bytes that a thread of a loop loads at once, and its warps.
_BYTES_AT_ONCE, _WARPS = 8, 2


def plan_windows(group: Group, storage: dict[str, torch.dtype]) -> Plan:
    """The plan for windows that are written out but for the loop that the group has."""
    program = fast_program(group, storage)
    accesses = accesses_of(program)
    # The loop along which memory lies is the last.
    dims = with_last(group.space.x, fastest(group.space.x, unit_bytes(accesses, group.space.x)))
    program = replace(program, space=Space(dims, group.space.r))
    itemsize = min((access.itemsize for access in accesses), default=4)
    block = 32 * _WARPS * max(_BYTES_AT_ONCE // itemsize, 1)
    block = min(block, next_power_of_two(max(hint(program.space.numel), 1)))
    axes = (Axis("x", program.space.x, block), Axis("r", program.space.r, 1))
    return Plan("looped", program, axes, max(1, min(_WARPS, block // 32)))
