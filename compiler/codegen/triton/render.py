"""A fused group as the text of Triton: one kernel, or several that share a launch."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.naming import named_program
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.triton.batch import render_batch
from compiler.codegen.triton.printer import KernelPrinter
from compiler.codegen.triton.product import render_product
from compiler.codegen.triton.reductions import teams
from compiler.codegen.triton.reductions.look_back import LookBackPrinter
from compiler.codegen.triton.reductions.shared_rows import SplitPrinter
from compiler.devices import Device
from compiler.schedule.group import Batch, Group
from compiler.schedule.products.loops import Product
from compiler.schedule.program.build import fast_program
from compiler.schedule.tiles.choose import choose_tile
from compiler.schedule.tiles.plan import (
    CooperativePlan,
    LookBackPlan,
    LoopedPlan,
    LoopTile,
    Plan,
    PointwisePlan,
    SplitPlan,
)


def render_triton(
    group: Group, storage: dict[str, torch.dtype], device: Device, read_again: frozenset[str] = frozenset()
) -> RenderedKernel:
    """The kernel of `group` for `device`; `storage` gives the dtype of every buffer that it touches. What is
    `read_again` after it stays in the cache."""
    if isinstance(group, Batch):
        return render_batch(group.name, [plan_tile(part, storage, device, shares_launch=True) for part in group.parts])
    if isinstance(group, Product):
        return render_product(group, storage, device)
    return render_plan(replace(plan_tile(group, storage, device), read_again=read_again))


def render_plan(plan: Plan) -> RenderedKernel:
    """The kernel of a plan, whose blocks need not be the ones that `plan_tile` would choose."""
    match plan:
        case SplitPlan():
            return SplitPrinter(plan).kernel()
        case CooperativePlan():
            return teams.printer_of(plan).kernel()
        case LookBackPlan():
            return LookBackPrinter(plan).kernel()
        case _:
            return KernelPrinter(plan).kernel()


def plan_tile(group: Group, storage: dict[str, torch.dtype], device: Device, shares_launch: bool = False) -> Plan:
    """The tile that the scheduler priced for `group` on `device`, with names for its values; see `choose_tile`."""
    run, tile = choose_tile(group, storage, device, shares_launch)
    if isinstance(tile, LoopTile):
        program = replace(fast_program(run, storage), space=tile.space)
        plan = LoopedPlan if tile.space.r else PointwisePlan
        tile = plan(program, tile.axes, tile.num_warps)
    return replace(tile, program=named_program(tile.program, run))
