"""Which plan a group gets on a device.

`plan_tile` is a pure function of a group and a device; what `plan.py` lists is what it chooses among."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.loops import simplify_loops
from compiler.codegen.triton.plan import Plan
from compiler.codegen.triton.tile_pointwise import plan_pointwise
from compiler.codegen.triton.tile_reduction import is_outer, plan_reduction
from compiler.codegen.triton.tile_windows import plan_windows
from compiler.devices import Device
from compiler.schedule.group import Group
from compiler.schedule.unroll import is_short, written_out
from compiler.schedule.windows import over_windows


def plan_tile(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for `group` on `device`."""
    windows = over_windows(group)
    simple = simplify_loops(windows or group)
    if windows is not None and simple.space.r:
        return plan_windows(simple, storage)
    if simple.space.r and is_short(simple) and is_outer(simple, storage):
        # A tile would have lanes for the few rows, each of which goes far in memory. On an H200 the largest of four
        # rows and which they are, with gradients, take 114 us so, 637 as tiles; the gradients of five rows that are
        # looked up 93 and 202.
        simple = written_out(simple, with_points=True) or simple
    if not simple.space.r:
        return plan_pointwise(simple, storage, device)
    return plan_reduction(simple, storage, device)


def plan_part(part: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for one of several groups in a launch, which has no scratch memory to share its rows by."""
    plan = plan_tile(part, storage, device)
    return plan if plan.kind != "split" else replace(plan, kind="looped", splits=1, chunk=0)
