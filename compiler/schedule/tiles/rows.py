"""Tiles of rows: those that a program holds in registers, and those that it goes over in blocks."""

from __future__ import annotations

from compiler.devices import SECTOR, Device
from compiler.ir.size import hint, known, next_power_of_two
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.columns import expected_length
from compiler.schedule.tiles.plan import BYTES_PER_THREAD, LoopedPlan, PersistentPlan, row_axes, warps_for
from compiler.schedule.tiles.programs import (
    COALESCED_POINTS,
    block_of_scan,
    elements_of_many_accesses,
    is_fed_by,
    reads_near_tables,
    reads_rows_at_loaded_indices,
    rows_of_a_warp,
)
from compiler.schedule.tiles.registers import (
    REGISTERS_FOR_ADDRESSES,
    carries,
    finds_positions,
    leaving_room,
    live_registers,
    registers_for_rows,
    registers_of_rows,
    stores_elements,
)
from compiler.schedule.tiles.walk import Walk, accesses_of, loads_along_r
from compiler.schedule.vectors import VECTOR_BYTES

#: Bytes of a tensor that a thread takes where a tile is read along x and written along r, and values of each element
#: that may live at a time then; and its elements where it is read along r and written along x. On an H200 a layer norm
#: of 192 channels of 32 x 56 x 56 bfloat16 takes 34 us the one way by 128 threads of 64 elements, 41 by 256, and 53 by
#: 512, and the other way 32, 31 and 28; of 128 channels of float32 33, 32 and 32.
_BYTES_OF_BOTH_WAYS, _FEW_LIVE, _OF_BOTH_WAYS = 128, 4, 16


def _elements_of_a_thread(r_block: int, itemsize: int) -> int:
    """Of a row in registers: two vectors of 16 bytes, which one thread has in flight together. On an H200, layer norm
    of rows of 4,096 bfloat16 takes 72 us with 16 elements in each thread, 84 us with 8."""
    return min(16, max(BYTES_PER_THREAD // itemsize, 16 if r_block >= 8192 else 8))


#: Programs, as a share of the multiprocessors, that are few: what a thread does then takes as long as all of it. Their
#: elements from which on many warps take them, one each. On an H200 the sine, cosine, exponential, sum and maximum of
#: 256 values take 5.5 us by eight warps, 6.1 by one; a mean of 2,048 5.6 by sixteen, 6.1 by eight.
_FEW_PROGRAMS, _LEAST_OF_FEW, _WARPS_OF_FEW = 4, 256, 16

#: Elements of a program of short rows, and of one of which a device would start more than it could feed.
_ELEMENTS, _MANY_ELEMENTS = 1024, 4096


def plan_held(program: Program, walk: Walk, device: Device) -> PersistentPlan:
    r_block = next_power_of_two(known(program.space.reduction_numel))
    in_a_warp = rows_of_a_warp(program, live_registers(program), walk.itemsize, device)
    if in_a_warp and not (walk.is_outer or walk.is_mixed):
        return PersistentPlan(program, row_axes(program, in_a_warp, r_block), 1)
    x_block, per_thread = _rows_and_elements(program, walk, r_block, device)
    warps = _warps_of_held(program, walk, x_block, r_block, per_thread, device)
    return PersistentPlan(program, row_axes(program, x_block, r_block), warps)


def _rows_and_elements(program: Program, walk: Walk, r_block: int, device: Device) -> tuple[int, int]:
    """How many rows a program holds beside each other, and how many elements a thread has of them. Where rows lie side
    by side by threes, such as colours, a few of them at once are whole sectors. On an H200 the weights and the colours
    of 65,536 rays of 128 samples take 72 us by 8 rows of colours at once, 83 by 32."""
    rows = hint(program.space.numel)
    run = hint(program.space.x[-1].size) if program.space.x else 1
    is_short = walk.is_mixed and run * walk.itemsize < SECTOR
    lies_across = (walk.is_outer or walk.is_mixed) and not is_short
    goes_both_ways = walk.is_mixed and not is_short and live_registers(program) <= _FEW_LIVE
    x_block = max(1, _ELEMENTS // r_block, COALESCED_POINTS if lies_across else 0)
    per_thread = _elements_of_a_thread(r_block, walk.itemsize)
    if not is_fed_by(rows / x_block, program, device):
        # On an H200 the ranks of 128 values of 8,192 rows each take 85 us by programs of 8 x 128, 39 by 32 x 128, 35 by
        # 64 x 128: as many elements as leave a thread some registers.
        many = _MANY_ELEMENTS if live_registers(program) > _FEW_LIVE else 2 * _MANY_ELEMENTS
        x_block, per_thread = max(x_block, many // r_block), many // 128
    while x_block > 1 and rows < x_block * device.multiprocessors and not walk.is_outer:
        x_block //= 2
    x_block = min(x_block, next_power_of_two(rows))
    # Sums for each r are held however long a row is, and then few rows fit beside each other.
    while x_block > 1 and registers_of_rows(program) * x_block * r_block > registers_for_rows(device):
        x_block //= 2
    if goes_both_ways and loads_along_r(program):
        return x_block, _OF_BOTH_WAYS
    per_thread = min(per_thread, elements_of_many_accesses(program) or per_thread)
    if reads_rows_at_loaded_indices(program):
        # On an H200 524,288 products of two rows of 128 float32 out of 65,536 take 67 us so, 74 by eight elements.
        per_thread = max(per_thread, 16)
    if goes_both_ways:
        per_thread = max(per_thread, _BYTES_OF_BOTH_WAYS // walk.itemsize)
    return x_block, per_thread


def _warps_of_held(program: Program, walk: Walk, x_block: int, r_block: int, per_thread: int, device: Device) -> int:
    """Warps of a program of `x_block` rows of `r_block` elements, of which a thread has `per_thread`; more where few
    programs leave the device to them, and fewer where the registers would not do."""
    rows = hint(program.space.numel)
    warps = warps_for(x_block * r_block, per_thread, most=device.threads_per_block // 32 or 32)
    if _FEW_PROGRAMS * (rows // x_block) <= device.multiprocessors and x_block * r_block >= _LEAST_OF_FEW:
        warps = max(warps, warps_for(x_block * r_block, 1, most=_WARPS_OF_FEW))
    if not (walk.is_outer or walk.is_mixed) and x_block == 1 and rows <= device.multiprocessors:
        # No multiprocessor has a second one. On an H200 a sum and its layer norm, 128 rows of 768 float32, take 2.5 us
        # by one vector of each thread, 2.8 by two.
        warps = max(warps, warps_for(r_block, VECTOR_BYTES // walk.itemsize, most=_WARPS_OF_FEW))
    needed = live_registers(program) * (x_block * r_block // (warps * 32)) + REGISTERS_FOR_ADDRESSES
    while warps > 4 and needed > device.registers_per_multiprocessor // (warps * 32):
        # Too many threads for the registers: fewer threads may have more each, up to 255.
        warps //= 2
        needed = 2 * (needed - REGISTERS_FOR_ADDRESSES) + REGISTERS_FOR_ADDRESSES
    return warps


#: Rows for each multiprocessor from which on tiles of whole lines both ways, which have 32 of them, keep it busy
#: without sharing rows. On an H200 two cross entropies of 4,096 x 4,096 scores, along both, and their gradient take
#: 125 us by 128 programs of such tiles, 98 in kernels of their own.
_ROWS_OF_LINES = 64

#: Rows for each multiprocessor from which on none of them is idle for long.
_FILLING = 2


def plan_looped(program: Program, walk: Walk, is_shared: bool, device: Device) -> LoopedPlan:
    """`is_shared` says that several programs may share a row where rows alone do not fill the device."""
    rows = hint(program.space.numel)
    is_filled = (is_shared and not program.across) or rows >= _ROWS_OF_LINES * device.multiprocessors
    if walk.is_outer or (walk.is_mixed and not program.scans and (is_filled or _is_of_tables(program, device))):
        return _plan_of_columns(program, walk, is_shared, device)
    return _plan_of_rows(program, walk, is_shared, device)


def _plan_of_columns(program: Program, walk: Walk, is_shared: bool, device: Device) -> LoopedPlan:
    """Blocks of several rows that lie side by side. Where a tensor is walked along x and another one along r, a tile
    has whole lines of both."""
    rows, size = hint(program.space.numel), expected_length(program.space.reduction_numel)
    x_block = min(64 if walk.itemsize >= 4 else 128, next_power_of_two(rows))
    while not is_shared and x_block > SECTOR // walk.itemsize and rows < x_block * device.multiprocessors:
        x_block //= 2
    r_block = min(2048 // x_block, next_power_of_two(size))
    per_thread = 16 if is_shared else 8
    if walk.is_mixed:
        x_block, r_block = min(32, x_block), min(64, next_power_of_two(size))
        if _is_of_tables(program, device):
            x_block, r_block, per_thread = _ROWS_OF_TABLES, min(_ALONG_TABLES, r_block * x_block), 8
    if program.scans:
        x_block, r_block = block_of_scan(x_block, r_block, is_outer=True)
        per_thread = 8
    return LoopedPlan(program, row_axes(program, x_block, r_block), warps_for(x_block * r_block, per_thread, most=16))


def _plan_of_rows(program: Program, walk: Walk, is_shared: bool, device: Device) -> LoopedPlan:
    """Blocks of one row, or of a few short ones."""
    rows, size = hint(program.space.numel), expected_length(program.space.reduction_numel)
    accumulators = sum(len(section.reductions) for section in program.sections)
    is_apart, finds = _reads_apart(program), finds_positions(program)
    is_carrying = carries(program) or finds
    x_block = 1 if size >= 1024 or rows < device.multiprocessors else min(4, next_power_of_two(rows))
    most = 2048 if accumulators > 2 or walk.itemsize > 4 else 4096
    r_block, per_thread = min(_BLOCK_APART if is_apart else most, next_power_of_two(size)), 2 if is_apart else 8
    if finds and not is_apart:
        # On an H200 the argmax of 8,192 rows of 32,000 bfloat16 takes 143 us so, 162 by eight elements.
        per_thread = 16
    if is_carrying and is_shared:
        # The assembler puts the loads of a block between what is carried along, each next to its use: many threads
        # hide that. On an H200 a cross entropy of rows of 50,304 takes 428 us so, and 790 by 32 elements a thread.
        r_block = min(r_block, 2048)
        is_exponential = any(s.value == "exponentials" for s in program.statements)
        if is_exponential and not finds and rows >= _ROWS_AT_ONCE * device.multiprocessors:
            # In us by eight elements a thread and by four: of 8,192 rows of 32,000 float32 389 and 363; logarithms of
            # sums of 4,096 rows of 65,536 bfloat16 427 and 240, of 300 of 200,000 314 and 121. Of 64 rows 253 and 333.
            r_block, per_thread = min(r_block, 1024), 4
    if program.scans:
        x_block, r_block = block_of_scan(x_block, r_block, is_outer=False)
        per_thread = 8
    if is_shared and not (is_carrying or is_apart or stores_elements(program)):
        # Where small programs are enough to fill the device, they hide more latency, each with more loads in flight.
        # With a store for each element it is the other way around: on an H200 33,554,432 float16 as float32, and
        # whether all are finite, take 67 us by 32 elements, 61 by eight.
        small = warps_for(x_block * r_block, 32, most=16)
        programs = -(-rows // x_block) * (-(-size // r_block) // 2)
        if programs * small * 32 >= device.multiprocessors * max(device.threads_per_multiprocessor, 1):
            # Of whole numbers fewer: three counts in 8,192 rows of 8,192 take 77 us so, and 80 by 32 elements. Two
            # norms and a largest one of 64 MB take 58 us by 16, and 48 by 32.
            counts = any(s.op == "reduce" and not s.dtype.is_floating_point for s in program.statements)
            per_thread = 16 if counts and accumulators > 2 else 32
    plan = LoopedPlan(program, row_axes(program, x_block, r_block), warps_for(x_block * r_block, per_thread, most=16))
    is_alone = not is_shared and rows >= _FILLING * device.multiprocessors
    return leaving_room(plan, device) if is_alone and x_block == 1 and not program.scans else plan


#: Rows for each multiprocessor from which on few of them are a program where all of them read small tables, rows of
#: such a program, and elements of each at a time. On an H200 the forces between 4,096 bodies take 44 us so, 128 by 32
#: rows of 64 elements, 114 by one row.
_MANY_ROWS_OF_TABLES, _ROWS_OF_TABLES, _ALONG_TABLES = 8, 8, 128


def _is_of_tables(program: Program, device: Device) -> bool:
    """Whether there are many rows, and all of them read small tables."""
    is_enough = hint(program.space.numel) >= _MANY_ROWS_OF_TABLES * device.multiprocessors
    return is_enough and reads_near_tables(program)


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
