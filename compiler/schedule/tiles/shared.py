"""Tiles of reductions in one pass: programs that share rows, or a sum of everything, and what they read but once."""

from __future__ import annotations

from dataclasses import replace

from compiler.devices import SECTOR, Device
from compiler.ir.size import hint, known
from compiler.schedule.tiles.columns import shared_plan
from compiler.schedule.tiles.plan import LoopedPlan, PersistentPlan, Plan, SplitPlan
from compiler.schedule.tiles.registers import carries, finds_positions, stores_elements
from compiler.schedule.tiles.walk import accesses_of

#: Values of all parts of a row that a thread of the last program holds as it joins them; with more, registers spill. On
#: an H200 a batch norm of 256 columns of 100,352 rows took 517 us with 896 parts (45,428 spills); its bytes take 25.
_MOST_JOINED = 64
_JOINED_AT_ONCE = 4

#: Tensors of so many times the cache are as quick either way.
_CACHES_PASSED = 4


def evicts_first(plan: Plan, device: Device) -> bool:
    """Whether what is read once and comes to a few values should leave to others what they have in the cache: their
    data would have to be written back first. On an H200 the deviations of 128 x 512 x 256 along the middle take 24.5 us
    so, 27.2 without; four moments of 134 MB 50 and 55; three tensors of 34 MB 35 and 39. With 268 MB it is as quick
    either way."""
    program = plan.program
    loads = [a for a in accesses_of(program) if not a.index.dims.isdisjoint(program.space.r)]
    itemsize = min((a.itemsize for a in loads), default=1)
    is_column = isinstance(plan, PersistentPlan) and plan.axes[0].block * itemsize >= SECTOR
    is_streamed = isinstance(plan, SplitPlan | LoopedPlan) and len(program.passes) == 1
    return (
        (is_streamed or is_column)
        and plan.rows_in_turn is None
        and not stores_elements(plan.program)
        and sum(a.bytes for a in loads) <= _CACHES_PASSED * device.l2_bytes
    )


def shared_rows(plan: LoopedPlan, device: Device) -> LoopedPlan | SplitPlan:
    """A loop of one pass over rows, by as many programs as the device is fed by."""
    return _in_single_blocks(plan, device) or _split(plan, device)


#: Bytes of a program that takes one block of a sum of everything, and the most of them whose parts one joins.
_SINGLE_BLOCK, _MOST_BLOCKS = 65536, 4096


def _in_single_blocks(plan: LoopedPlan, device: Device) -> LoopedPlan | SplitPlan | None:
    """A sum of everything by programs that take a block each, as large as there are; None for others, and where the
    last program would have more to join than it saves. On an H200 the sum of 67,108,864 float32 takes 71 us so, 75 by
    programs that take 16 blocks each, of bfloat16 40 and 42; blocks of half the size take 77 and 44."""
    x_axis, r_axis = plan.axes
    loads = [s for s in plan.program.statements if s.op == "load" and s.level == "r"]
    reductions = [s for section in plan.program.sections for s in section.reductions]
    length = r_axis.numel
    if not x_axis.is_scalar or x_axis.numel != 1 or not isinstance(length, int) or len(loads) != 1:
        return None
    if len(reductions) > 2 or stores_elements(plan.program) or finds_positions(plan.program):
        return None
    block = _SINGLE_BLOCK // plan.program.dtype_of(loads[0]).itemsize
    blocks = -(-length // block)
    if carries(plan.program) or not 4 * device.multiprocessors < blocks <= _MOST_BLOCKS:
        return None
    large = replace(plan, axes=(x_axis, replace(r_axis, block=block)), num_warps=device.threads_per_block // 32)
    return replace(shared_plan(large, blocks), evicts_first=True)


#: Programs that share a row, at the most, and where each element is stored too.
_MOST_SHARES, _MOST_SHARES_OF_STORES = 1024, 2048

#: Warps of programs that need not share rows so.
_WARPS_ALONE = 8


def _split(plan: LoopedPlan, device: Device) -> LoopedPlan | SplitPlan:
    """Share each row among several programs where rows alone do not fill the device.

    What is stored for each element of r in the one pass of such a plan needs no result, so each program stores its
    own."""
    x_axis, r_axis = plan.axes
    if not isinstance(x_axis.numel, int):
        return plan
    r_blocks = hint(r_axis.blocks)
    programs, warps = known(x_axis.blocks), device.multiprocessors * max(device.threads_per_multiprocessor // 32, 1)
    # With fewer than a third of the warps that the device can hold, memory is not kept busy.
    if programs == 0 or programs * plan.num_warps * 3 > warps or r_blocks < 4:
        return plan
    if plan.num_warps < _WARPS_ALONE and programs * _WARPS_ALONE * 3 > warps and not carries(plan.program):
        # On an H200 the sum over the outer and the inner axis of 64 x 512 x 1024 takes 40 us so, 41 by four programs of
        # 128 threads a row.
        return replace(plan, num_warps=_WARPS_ALONE)
    # No more programs than run at a time: one that waits for others to end has all of its share before it. On an H200
    # four sums of each of 64 rows of 262,144 float32 with an exponential and a logarithm take 60 us by 576 programs, 49
    # by 512.
    wanted = warps // plan.num_warps
    most_shares = _MOST_SHARES_OF_STORES if stores_elements(plan.program) else _MOST_SHARES
    splits = min(wanted // programs, r_blocks // 2, most_shares)
    # What is relative to another result is joined from several values of each part at once.
    most = _MOST_JOINED // _JOINED_AT_ONCE if carries(plan.program) else _MOST_JOINED
    joined = most * 32 * plan.num_warps // x_axis.block
    # More warps join more parts, but each program then waits for more: not for a few parts.
    if 4 * joined < 3 * splits and plan.num_warps < 8:
        plan, joined = replace(plan, num_warps=8), joined * 8 // plan.num_warps
    return shared_plan(plan, min(splits, max(joined, 1)))
