"""Tiles of long windows: each lane goes over some of its own, in a loop, with a sum for each of them in registers."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.triton.plan import Axis, Plan, next_power_of_two
from compiler.codegen.triton.short_forms import short_program
from compiler.codegen.triton.walk import accesses_of, fastest, unit_bytes, with_last
from compiler.devices import Device
from compiler.ir.size import hint
from compiler.schedule.group import Group, Space

#: Bytes that a thread loads at once, and its warps.
_BYTES_AT_ONCE, _WARPS = 8, 2


def plan_windows(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """A plan that takes one element of the loop that windows have left at a time."""
    program = short_program(group, storage)
    accesses = accesses_of(program)
    x_dims = with_last(group.space.x, fastest(group.space.x, unit_bytes(accesses, group.space.x)))
    program = replace(program, space=Space(x_dims, group.space.r))
    itemsize = min((access.itemsize for access in accesses), default=4)
    block = 32 * _WARPS * max(_BYTES_AT_ONCE // itemsize, 1)
    block = min(block, next_power_of_two(max(hint(program.space.numel), 1)))
    return Plan(
        "looped", program, (Axis("x", x_dims, block), Axis("r", group.space.r, 1)), max(1, min(_WARPS, block // 32))
    )
