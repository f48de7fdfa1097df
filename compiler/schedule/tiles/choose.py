"""Choose the tile of a group on a GPU, once: the scheduler prices it, and the printer obeys it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from compiler.devices import Device
from compiler.ir.size import hint, next_power_of_two
from compiler.schedule.group import Group
from compiler.schedule.tiles.loops import simplify_loops
from compiler.schedule.tiles.plan import Axis, LoopTile, Plan, SplitPlan
from compiler.schedule.tiles.pointwise import pointwise_tile
from compiler.schedule.tiles.reductions import plan_reduction
from compiler.schedule.tiles.text import touching_program
from compiler.schedule.tiles.walk import accesses_of, fastest, unit_bytes, with_last
from compiler.schedule.unroll import is_short, written_out
from compiler.schedule.windows import over_windows

#: Bytes that a thread of a loop over windows loads at once, and its warps.
_BYTES_AT_ONCE, _WARPS = 8, 2


def choose_tile(
    group: Group, storage: Mapping[str, torch.dtype], device: Device, shares_launch: bool
) -> tuple[Group, LoopTile | Plan]:
    """The group as it is run, over simple loops, and its tile; `storage` gives the dtype of every buffer that it
    touches. A group that shares a launch with others has no scratch memory to share its rows by. The tile is kept with
    the group, so that its price, its text and its levels of memory are told by one and the same."""
    key = device, shares_launch
    if key not in group.tiles:
        by_lanes = _run_by_lanes(group, storage, device)
        group.tiles[key] = by_lanes or _run_together(group, storage, device, shares_launch)
    return group.tiles[key]


def _run_together(
    group: Group, storage: Mapping[str, torch.dtype], device: Device, shares_launch: bool
) -> tuple[Group, Plan]:
    run = simplify_loops(group)
    plan = plan_reduction(run, storage, device)
    return run, plan.alone if shares_launch and isinstance(plan, SplitPlan) else plan


def _run_by_lanes(group: Group, storage: Mapping[str, torch.dtype], device: Device) -> tuple[Group, LoopTile] | None:
    """The group over simple loops, without the reductions that each lane does by itself, and its tile; `storage` gives
    the dtype of every buffer that it touches. None for a reduction that several lanes do together."""
    windows = over_windows(group)
    if windows is None and group.space.r and not is_short(group):
        return None
    run = simplify_loops(windows or group)
    if windows is not None and run.space.r:
        return run, _window_tile(run, storage)
    if run.space.r:
        # A tile would have lanes for the few rows, each of which goes far in memory. On an H200 the largest of four
        # rows and which they are, with gradients, take 114 us so, 637 as tiles; the gradients of five rows that are
        # looked up 93 and 202.
        written = written_out(run, with_points=True) if _is_outer(run, storage) else None
        if written is None:
            return None
        run = written
    return run, pointwise_tile(run, storage, device)


def _window_tile(group: Group, storage: Mapping[str, torch.dtype]) -> LoopTile:
    """The tile of long windows, which are written out but for the loop that the group has: a lane goes over some at a
    time, with a sum for each of them in registers."""
    accesses = accesses_of(touching_program(group, storage))
    # The loop along which memory lies is the last.
    dims = with_last(group.space.x, fastest(group.space.x, unit_bytes(accesses, group.space.x)))
    itemsize = min((access.itemsize for access in accesses), default=4)
    block = 32 * _WARPS * max(_BYTES_AT_ONCE // itemsize, 1)
    block = min(block, next_power_of_two(hint(group.space.numel)))
    return LoopTile((Axis("x", dims, block), Axis("r", group.space.r, 1)), max(1, min(_WARPS, block // 32)))


def _is_outer(group: Group, storage: Mapping[str, torch.dtype]) -> bool:
    """Whether neighbours in the memory that is read or written for each point of a reduction are different points of
    x; rows that are looked up, one for each point, are among it, and tensors that are stacked. So they are where
    nothing is read or written for each point."""
    program = touching_program(group, storage)
    accesses = accesses_of(replace(program, statements=tuple(s for s in program.statements if s.level == "r")))
    x_unit, r_unit = unit_bytes(accesses, group.space.x), unit_bytes(accesses, group.space.r)
    return not accesses or max(x_unit.values(), default=0) > max(r_unit.values(), default=0)
