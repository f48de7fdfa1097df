"""Tiles of reductions across memory: columns that a program holds, or goes over in blocks, alone or with others.

How large blocks are is decided in `schedule/cost/columns.py`, for the model of the device as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch

from compiler.devices import Device
from compiler.ir.size import Integer, hint, known
from compiler.schedule.cost.columns import Columns, Walked, most_parts, shares_of, streamed_columns
from compiler.schedule.cost.shape import columns_of, computes_much, is_heavy, passes_over_r, walked_of
from compiler.schedule.group import Group
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.plan import Axis, Plan


def walked_by(group: Group, storage: dict[str, torch.dtype]) -> Walked:
    """What a reduction reads, of buffers that hold these dtypes."""
    return walked_of(group, frozenset().union(*passes_over_r(group)), storage)


def held_plan(program: Program, group: Group, walked: Walked, device: Device) -> Plan | None:
    """A plan whose programs hold all of r, None where columns are too long for that or nothing is gained."""
    columns = columns_of(group, passes_over_r(group), walked, device)
    return None if columns is None else _of_columns("persistent", program, columns)


def streamed_plan(
    program: Program, group: Group, walked: Walked, is_shared: bool, carries: bool, device: Device
) -> Plan:  # fmt: skip
    """Loops over blocks of r. In one pass (`is_shared`) several programs may share a column; `carries` says that sums
    are carried along which are relative to another result."""
    rows, length = hint(program.space.numel), expected_length(program.space.reduction_numel)
    columns = streamed_columns(rows, length, walked, is_shared, is_heavy(group), computes_much(group), device)
    plan = _of_columns("looped", program, columns)
    if not is_shared or not isinstance(program.space.numel, int):
        return plan
    programs, blocks = known(plan.axes[0].blocks), hint(plan.axes[-1].blocks)
    shares = shares_of(programs, blocks, columns.warps, most_parts(columns, carries), carries, walked.is_stored, device)
    return shared_plan(plan, shares)


def shared_plan(plan: Plan, shares: int) -> Plan:
    """Each row shared among so many programs, which take as many blocks each, but for the last one."""
    r_axis = plan.axes[-1]
    if shares < 2 or not isinstance(r_axis.numel, int):
        return replace(plan, kind="split", splits=shares) if shares > 1 else plan
    chunk = -(-known(r_axis.blocks) // shares) * r_axis.block
    shares = -(-r_axis.numel // chunk)
    return replace(plan, kind="split", splits=shares, chunk=chunk) if shares > 1 else plan


def expected_length(size: Integer) -> int:
    """For the choice of a block: a length that differs from call to call may be small in the first."""
    return size if isinstance(size, int) else max(hint(size), 1024)


def _of_columns(kind: Literal["persistent", "looped"], program: Program, columns: Columns) -> Plan:
    x_axis = Axis("x", program.space.x, columns.x_block, is_scalar=columns.x_block == 1)
    return Plan(kind, program, (x_axis, Axis("r", program.space.r, columns.r_block)), columns.warps)
