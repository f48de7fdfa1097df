"""Tiles of long windows, some of which a lane goes over at a time, with a sum for each of them in registers."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.ir.size import hint, next_power_of_two
from compiler.schedule.group import Group
from compiler.schedule.tiles.plan import Axis, LoopTile
from compiler.schedule.tiles.text import touching_program
from compiler.schedule.tiles.walk import accesses_of, fastest, unit_bytes, with_last

#: Bytes that a thread of a loop loads at once, and its warps.
_BYTES_AT_ONCE, _WARPS = 8, 2


def window_tile(group: Group, storage: Mapping[str, torch.dtype]) -> LoopTile:
    """The tile of windows that are written out but for the loop that the group has."""
    accesses = accesses_of(touching_program(group, storage))
    # The loop along which memory lies is the last.
    dims = with_last(group.space.x, fastest(group.space.x, unit_bytes(accesses, group.space.x)))
    itemsize = min((access.itemsize for access in accesses), default=4)
    block = 32 * _WARPS * max(_BYTES_AT_ONCE // itemsize, 1)
    block = min(block, next_power_of_two(max(hint(group.space.numel), 1)))
    return LoopTile((Axis("x", dims, block), Axis("r", group.space.r, 1)), max(1, min(_WARPS, block // 32)))
