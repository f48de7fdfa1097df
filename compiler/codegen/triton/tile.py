"""The plan of a kernel: the tile that the scheduler priced (`schedule/tiles/`), with names for its values."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.naming import named_program
from compiler.devices import Device
from compiler.schedule.group import Group
from compiler.schedule.program.build import fast_program
from compiler.schedule.tiles.choose import choose_tile
from compiler.schedule.tiles.plan import LoopedPlan, LoopTile, Plan, PointwisePlan


def plan_tile(group: Group, storage: dict[str, torch.dtype], device: Device, shares_launch: bool = False) -> Plan:
    """The plan for `group` on `device`; see `choose_tile`."""
    run, tile = choose_tile(group, storage, device, shares_launch)
    if isinstance(tile, LoopTile):
        program = replace(fast_program(run, storage), space=tile.space)
        plan = LoopedPlan if tile.space.r else PointwisePlan
        tile = plan(program, tile.axes, tile.num_warps)
    return replace(tile, program=named_program(tile.program, run))
