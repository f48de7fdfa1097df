"""Which plan a group gets on a device.

`plan_tile` is a pure function of a group and a device. Where programs know nothing of each other it gives the kernel
the tile that the scheduler priced (`schedule/tiles/`); of other reductions, what `schedule/tiles/plan.py` lists is what
it chooses among."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.building import fast_program
from compiler.codegen.triton.tile_reduction import plan_reduction
from compiler.devices import Device
from compiler.schedule.group import Group
from compiler.schedule.tiles.lanes import run_by_lanes
from compiler.schedule.tiles.loops import simplify_loops
from compiler.schedule.tiles.plan import Plan


def plan_tile(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for `group` on `device`."""
    found = run_by_lanes(group, storage, device)
    if found is None:
        return plan_reduction(simplify_loops(group), storage, device)
    run, tile = found
    program = replace(fast_program(run, storage), space=tile.space)
    return Plan("looped" if tile.space.r else "pointwise", program, tile.axes, tile.num_warps)


def plan_part(part: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for one of several groups in a launch, which has no scratch memory to share its rows by."""
    plan = plan_tile(part, storage, device)
    return plan if plan.kind != "split" else replace(plan, kind="looped", splits=1, chunk=0)
