"""Tiles of rows that a program goes over in blocks."""

from __future__ import annotations

from compiler.devices import SECTOR, Device
from compiler.ir.size import hint, next_power_of_two
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.columns import (
    expected_length,
)
from compiler.schedule.tiles.plan import Axis, LoopedPlan, warps_for
from compiler.schedule.tiles.programs import (
    block_of_scan,
)
from compiler.schedule.tiles.registers import (
    carries,
    finds_positions,
    leaving_room,
    stores_elements,
)
from compiler.schedule.tiles.walk import Walk, accesses_of

#: Rows for each multiprocessor from which on tiles of whole lines both ways, which have 32 of them, keep it busy
#: without sharing rows. On an H200 two cross entropies of 4,096 x 4,096 scores, along both, and their gradient take
#: 125 us by 128 programs of such tiles, 98 in kernels of their own.
_ROWS_OF_LINES = 64

#: Rows for each multiprocessor from which on none of them is idle for long.
FILLING = 2


def plan_looped(program: Program, walk: Walk, is_shared: bool, device: Device) -> LoopedPlan:
    """`is_shared` says that several programs may share a row where rows alone do not fill the device. Where a tensor is
    walked along x and another one along r, a tile has whole lines of both."""
    rows, size = hint(program.space.numel), expected_length(program.space.reduction_numel)
    is_filled = (is_shared and not program.across) or rows >= _ROWS_OF_LINES * device.multiprocessors
    has_rows = walk.is_outer or (walk.is_mixed and not program.scans and is_filled)
    accumulators = sum(len(section.reductions) for section in program.sections)
    is_apart = not has_rows and _reads_apart(program)
    if has_rows:
        x_block = min(64 if walk.itemsize >= 4 else 128, next_power_of_two(max(rows, 1)))
        while not is_shared and x_block > SECTOR // walk.itemsize and rows < x_block * device.multiprocessors:
            x_block //= 2
        r_block = min(2048 // x_block, next_power_of_two(size))
        if walk.is_mixed:
            x_block, r_block = min(32, x_block), min(64, next_power_of_two(size))
    else:
        x_block = 1 if size >= 1024 or rows < device.multiprocessors else min(4, next_power_of_two(rows))
        most = 2048 if accumulators > 2 or walk.itemsize > 4 else 4096
        r_block = min(_BLOCK_APART if is_apart else most, next_power_of_two(size))
    per_thread = 16 if has_rows and is_shared else 2 if is_apart else 8
    finds = finds_positions(program)
    is_carrying = carries(program) or finds
    if finds and not has_rows and not is_apart:
        # On an H200 the places of the largest of 8,192 rows of 32,000 bfloat16 take 143 us so, 162 by eight elements.
        per_thread = 16
    if is_carrying and is_shared and not has_rows:
        # The assembler puts the loads of a block between what is carried along, each next to its use: many threads
        # hide that. On an H200 a cross entropy of rows of 50,304 takes 428 us so, and 790 by 32 elements a thread.
        r_block = min(r_block, 2048)
        if rows >= _ROWS_AT_ONCE * device.multiprocessors and any(
            s.value == "exponentials" for s in program.statements
        ):
            # In us by eight elements a thread and by four: of 8,192 rows of 32,000 float32 389 and 363; logarithms of
            # sums of 4,096 rows of 65,536 bfloat16 427 and 240, of 300 of 200,000 314 and 121. Of 64 rows 253 and 333.
            r_block, per_thread = min(r_block, 1024), 4
    if program.scans:
        x_block, r_block = block_of_scan(x_block, r_block, has_rows)
        per_thread = 8
    axes = (Axis("x", program.space.x, x_block, is_scalar=x_block == 1), Axis("r", program.space.r, r_block))
    # Where small programs are enough to fill the device, they hide more latency, each with more loads in flight.
    small = warps_for(x_block * r_block, 32, most=16)
    programs = -(-rows // x_block) * (-(-size // r_block) // 2) if is_shared and not has_rows else 0
    fills = programs * small * 32 >= device.multiprocessors * max(device.threads_per_multiprocessor, 1)
    counts = any(s.op == "reduce" and not s.dtype.is_floating_point for s in program.statements)
    if fills and not is_carrying and not is_apart and not stores_elements(program):
        # Of whole numbers fewer: on an H200 three counts in 8,192 rows of 8,192 take 77 us so, and 80 by 32 elements.
        # Two norms and a largest one of 64 MB take 58 us by 16, and 48 by 32. With a store for each element it is the
        # other way around: 33,554,432 float16 as float32, and whether all are finite, 67 us by 32, 61 by eight.
        per_thread = 16 if counts and accumulators > 2 else 32
    plan = LoopedPlan(program, axes, warps_for(x_block * r_block, per_thread, most=16))
    is_alone = not (has_rows or is_shared) and rows >= FILLING * device.multiprocessors
    return leaving_room(plan, device) if is_alone and x_block == 1 and not program.scans else plan


#: Rows for each multiprocessor from which on their programs keep it busy, however few elements a thread has.
_ROWS_AT_ONCE = 2

#: Elements of a block of rows that are read with gaps, two for each of many threads.
_BLOCK_APART = 1024


def _reads_apart(program: Program) -> bool:
    """Whether rows are read with gaps, such as one of four neighbours after the other: lanes then follow each other
    closely in memory only where each takes few elements. On an H200 the sum of smooth L1 losses of 1,048,576 boxes
    takes 20 us by two elements a thread, 28 by four, 45 by eight."""
    last = program.space.r[-1]
    steps = [a.index.stride(last) for a in accesses_of(program) if last in a.index.dims]
    return 2 * sum(step not in (0, 1, -1) for step in steps) > len(steps)
