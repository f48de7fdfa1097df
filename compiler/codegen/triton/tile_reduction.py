"""Tiles of reductions: a row in registers, in blocks, or shared among programs, by what fits and fills the device."""

from __future__ import annotations

from dataclasses import replace

import torch

from compiler.codegen.building import fast_program, fast_statements_of, program_of
from compiler.codegen.rest import rest_apart
from compiler.codegen.triton.programs import (
    COALESCED_POINTS,
    block_of_scan,
    elements_of_long_work,
    elements_of_many_accesses,
    is_fed_by,
    looks_up_elements,
    reads_rows_at_loaded_indices,
    reads_tables_for_each_row,
    rows_of_a_warp,
    stores_elements,
)
from compiler.codegen.triton.tile_across import joins_rows_last, plan_across
from compiler.codegen.triton.tile_columns import expected_length, held_plan, streamed_plan, walked_by
from compiler.codegen.triton.tile_lane_parts import plan_in_parts
from compiler.codegen.triton.tile_registers import (
    REGISTERS_FOR_ADDRESSES,
    carries,
    leaving_room,
    live_registers,
    loading_ahead,
    r_sections,
)
from compiler.codegen.triton.tile_shared import evicts_first, shared_rows
from compiler.devices import SECTOR, WARP, Device
from compiler.ir.size import hint, is_multiple, known
from compiler.schedule.cost.columns import Walked
from compiler.schedule.cost.cooperative import cooperative_reduction
from compiler.schedule.cost.look_back import Chunks, bytes_of_scans, chunks_of, may_look_back
from compiler.schedule.cost.shape import ROWS_OF_LINES, SHORT, exchanges_floats, may_cooperate
from compiler.schedule.group import Group, Space
from compiler.schedule.program.program import Program
from compiler.schedule.program.single_pass import in_single_pass
from compiler.schedule.tiles.lengths import LONG_ROW, length_of
from compiler.schedule.tiles.plan import BYTES_PER_THREAD, Axis, Plan, next_power_of_two, warps_for
from compiler.schedule.tiles.vectors import VECTOR_BYTES
from compiler.schedule.tiles.walk import Walk, accesses_of, fastest, loads_along_r, unit_bytes, with_last

#: A longer row never fits the registers of a multiprocessor beside what else a kernel holds.
_LONGEST_PERSISTENT = 32768

#: The same where neighbours in memory are different rows, of which a program holds some.
_LONGEST_OUTER = 128

#: Bytes of a tensor that a thread takes where a tile is read along x and written along r, and values of each element
#: that may live at a time then; and its elements where it is read along r and written along x. On an H200 a layer norm
#: of 192 channels of 32 x 56 x 56 bfloat16 takes 34 us the one way by 128 threads of 64 elements, 41 by 256, and 53 by
#: 512, and the other way 32, 31 and 28; of 128 channels of float32 33, 32 and 32.
_BYTES_OF_BOTH_WAYS, _FEW_LIVE, _OF_BOTH_WAYS = 128, 4, 16

#: Rows for each multiprocessor from which on none of them is idle for long.
_FILLING = 2


def plan_reduction(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for a group with reduction loops."""
    plan = _plan_reduction(group, storage, device)
    return replace(plan, evicts_first=True) if plan.evicts_first or evicts_first(plan, device) else plan


def _plan_reduction(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    statements = fast_statements_of(group, storage)
    persistent = program_of(group, statements, storage, is_persistent=True)
    looped = program_of(group, statements, storage)
    passes = len(r_sections(looped))
    rewrite = in_single_pass(group.single_pass, group.space.reduction_numel) if group.single_pass else None
    if rewrite is not None:
        looped = fast_program(group, storage, rewrite=rewrite)
    accesses = [a for a in accesses_of(looped) if not a.index.dims.isdisjoint(group.space.r)]
    x_unit, r_unit = unit_bytes(accesses, group.space.x), unit_bytes(accesses, group.space.r)
    x_dims = with_last(group.space.x, fastest(group.space.x, x_unit)) if group.space.x else ()
    # A scan is one in the order of its loops.
    r_dims = group.space.r if group.has_scan else with_last(group.space.r, fastest(group.space.r, r_unit))
    space = Space(x_dims, r_dims)
    persistent, looped = replace(persistent, space=space), replace(looped, space=space)
    if may_look_back(group):
        chunks = chunks_of(hint(space.numel), known(space.reduction_numel), bytes_of_scans(group), device)
        if chunks is not None:
            return _plan_look_back(persistent, chunks)
    walk = Walk(r_unit[r_dims[-1]], x_unit[x_dims[-1]] if x_dims else 0, min((a.itemsize for a in accesses), default=4))
    # What one program holds needs no team, unless rows are so few that multiprocessors would have none.
    fills = hint(space.numel) >= _FILLING * device.multiprocessors
    is_held = fills and not walk.is_outer and _fits_registers(persistent, walk, passes, device)
    if may_cooperate(group) and not walk.is_mixed and not is_held and len(r_sections(looped)) > 1:
        loads = [{s.number for s in section.statements if s.op == "load"} for section in r_sections(looped)]
        again = sum(sum(number in of_pass for of_pass in loads) > 1 for number in set[int]().union(*loads))
        held = fast_program(group, storage, is_persistent=True, rewrite=rewrite)
        team = _plan_cooperative(replace(held, space=space), walk, again, exchanges_floats(group), device)
        if team is not None:
            return team
    goes_across, walked = walk.is_outer and not walk.is_mixed, walked_by(group, storage)
    whole = held_plan(persistent, group, walked, device) if goes_across else None
    fits = whole is not None or _fits_registers(persistent, walk, passes, device)
    if group.across:
        # Nobody shares the rows of several passes, so those of columns are in narrow blocks, for enough programs.
        is_one_pass, is_held = len(r_sections(looped)) == 1, fits or any(s.level == "r" for s in persistent.across)
        if is_one_pass and not is_held and joins_rows_last(looped):
            shared = _plan_of_shares(looped, group, walk, walked, device)
            if shared.kind == "split":
                return replace(shared, parts=known(shared.axes[0].blocks))
        plan = (
            _plan_persistent(persistent, walk, device) if is_held else _plan_looped(looped, walk, is_one_pass, device)
        )
        if is_held and whole is None and not (walk.is_outer or walk.is_mixed):
            plan = plan_in_parts(group, storage, persistent, device) or plan
        return plan_across(whole or plan, walk, whole is not None, device)
    if fits:
        if whole is not None:
            return whole
        goes_along = not (walk.is_outer or walk.is_mixed)
        in_parts = plan_in_parts(group, storage, persistent, device) if goes_along else None
        if in_parts is not None:
            return in_parts
        apart = rest_apart(group) if goes_along else None
        if apart is not None:
            main = fast_program(group, storage, is_persistent=True, rewrite=apart.rewrite)
            persistent = replace(main, space=Space(x_dims, (apart.main,)))
        return _plan_persistent(persistent, walk, device)
    # Not in several passes: the last program alone knows the result of the first.
    if len(r_sections(looped)) == 1 and not group.has_scan:
        plan = _plan_of_shares(looped, group, walk, walked, device)
        return loading_ahead(plan, device) if plan.kind == "looped" and carries(looped) else plan
    if goes_across and not group.has_scan:
        return streamed_plan(looped, group, walked, False, carries(looped), device)
    return _plan_looped(looped, walk, False, device)


def _plan_look_back(program: Program, chunks: Chunks) -> Plan:
    """Programs that have a chunk of a row each, and scan it after what those before them come to."""
    axes = (Axis("x", program.space.x, 1, is_scalar=True), Axis("r", program.space.r, chunks.length))
    return Plan("look_back", program, axes, chunks.warps, splits=chunks.count, team_size=chunks.of_group)


def _plan_of_shares(program: Program, group: Group, walk: Walk, walked: Walked, device: Device) -> Plan:
    """A loop of one pass, by several programs to a row where rows alone do not fill the device."""
    if walk.is_outer and not walk.is_mixed:
        return streamed_plan(program, group, walked, True, carries(program), device)
    return shared_rows(_plan_looped(program, walk, True, device), device)


def _plan_cooperative(program: Program, walk: Walk, held: int, floats: bool, device: Device) -> Plan | None:
    """A team of programs for each row, if its parts fit into registers and nothing is stored for a row as a whole
    before its first reduction: that might overwrite what another program of the team still has to read."""
    first = next(place for place, section in enumerate(program.sections) if section.level == "r")
    early = [s for section in program.sections[: first + 1] for s in section.statements if s.op == "store"]
    rows, length = hint(program.space.numel), known(program.space.reduction_numel)
    team = cooperative_reduction(rows, length, held, _loaded_itemsize(program, walk), walk.is_outer, device, floats)
    if team is None or any(s.level == "x" for s in early):
        return None
    x_axis = Axis("x", program.space.x, team.x_block, is_scalar=team.x_block == 1)
    axes = (x_axis, Axis("r", program.space.r, team.r_block))
    return Plan(
        "team", program, axes, team.warps, splits=team.size, chunk=team.share, is_cluster=team.is_cluster,
        most_registers=team.registers if team.is_cluster else 0,
    )  # fmt: skip


def _loaded_itemsize(program: Program, walk: Walk) -> int:
    """The bytes of the narrowest element that is loaded for each point of r."""
    loads = (program.storage[s.buffer or ""].itemsize for s in program.statements if s.op == "load" and s.level == "r")
    return min(loads, default=walk.itemsize)


def _fits_registers(program: Program, walk: Walk, passes: int, device: Device) -> bool:
    """Whether all of r may be held in registers. For one pass nothing is gained beyond a block's worth of r."""
    size = program.space.reduction_numel
    if not isinstance(size, int):
        return False  # a later call may have more
    if walk.is_outer and not walk.is_mixed:
        return size <= SHORT or (size <= _LONGEST_OUTER and passes > 1)
    if passes == 1 and size > 4096:
        return False
    padded = next_power_of_two(size)
    # Where x is contiguous in memory too, a block of it is held at once, so that both directions coalesce.
    points = min(COALESCED_POINTS, next_power_of_two(max(hint(program.space.numel), 1))) if walk.is_mixed else 1
    held = padded * live_registers(program) * points
    budget = device.registers_per_multiprocessor * 3 // 4 if device.registers_per_multiprocessor else 49152
    return padded <= _LONGEST_PERSISTENT and held <= budget


def _elements_per_thread(r_block: int, itemsize: int) -> int:
    """Of a row in registers: two vectors of 16 bytes, which one thread has in flight together. On an H200, layer norm
    of rows of 4,096 bfloat16 takes 72 us with 16 elements in each thread, 84 us with 8."""
    return min(16, max(BYTES_PER_THREAD // itemsize, 16 if r_block >= 8192 else 8))


#: Programs, as a share of the multiprocessors, that are few: what a thread does then takes as long as all of it. Their
#: elements from which on many warps take them, one each. On an H200 the sine, cosine, exponential, sum and maximum of
#: 256 values take 5.5 us by eight warps, 6.1 by one; a mean of 2,048 5.6 by sixteen, 6.1 by eight.
_FEW_PROGRAMS, _LEAST_OF_FEW, _WARPS_OF_FEW = 4, 256, 16

#: Elements of a thread that are looked up one by one.
_LOOKED_UP = 4

#: Elements of a program of which a device would start more than it could feed.
_MANY_ELEMENTS = 4096


def _plan_persistent(program: Program, walk: Walk, device: Device) -> Plan:
    """Where rows lie side by side by threes, such as colours, a few of them at once are whole sectors. On an H200 the
    weights and the colours of 65,536 rays of 128 samples take 72 us by 8 rows of colours at once, 83 by 32."""
    rows, size = hint(program.space.numel), known(program.space.reduction_numel)
    run = hint(program.space.x[-1].size) if program.space.x else 1
    r_block = next_power_of_two(size)
    in_a_warp = rows_of_a_warp(program, live_registers(program), walk.itemsize, device)
    goes_along = not (walk.is_outer or walk.is_mixed)
    if in_a_warp and goes_along:
        axes = (Axis("x", program.space.x, in_a_warp, is_scalar=in_a_warp == 1), Axis("r", program.space.r, r_block))
        return Plan("persistent", program, axes, 1)
    elements = 2048 if walk.itemsize <= 2 else 1024
    x_block = max(1, elements // r_block)
    of_work = elements_of_long_work(program, live_registers(program), walk.itemsize, device) if goes_along else 0
    if of_work and is_fed_by(rows / max(1, of_work * WARP // r_block), program, device):
        x_block = max(1, of_work * WARP // r_block)
    of_accesses = elements_of_many_accesses(program)
    is_looked_up = goes_along and looks_up_elements(program)
    if is_looked_up:
        x_block = max(_LOOKED_UP * WARP // r_block, 1)
    if of_accesses:
        x_block = min(x_block, max(4 * WARP * of_accesses // r_block, 1))
    is_short = walk.is_mixed and run * walk.itemsize < SECTOR
    if not (goes_along or is_short):
        x_block = max(x_block, COALESCED_POINTS)
    # Each element that is looked up is a sector, which takes longer than to start a program for so many of them.
    is_fed = is_looked_up or is_fed_by(rows / x_block, program, device)
    if not is_fed:
        # On an H200 the ranks of 128 values of 8,192 rows each take 85 us by programs of 8 x 128, 39 by 32 x 128, 35 by
        # 64 x 128: as many elements as leave a thread some registers.
        many = _MANY_ELEMENTS if live_registers(program) > _FEW_LIVE else 2 * _MANY_ELEMENTS
        x_block = max(x_block, many // r_block)
    while x_block > 1 and rows < x_block * device.multiprocessors and not walk.is_outer:
        x_block //= 2
    x_block = min(x_block, next_power_of_two(max(rows, 1)))
    per_thread = _elements_per_thread(r_block, walk.itemsize) if is_fed else many // 128
    per_thread = max(per_thread, of_work)
    per_thread = min(per_thread, of_accesses) if of_accesses else per_thread
    if is_looked_up:
        per_thread = _LOOKED_UP
    if reads_rows_at_loaded_indices(program):
        # On an H200 524,288 products of two rows of 128 float32 out of 65,536 take 67 us so, 74 by eight elements.
        per_thread = max(per_thread, 16)
    if walk.is_mixed and not is_short and live_registers(program) <= _FEW_LIVE:
        per_thread = _OF_BOTH_WAYS if loads_along_r(program) else max(per_thread, _BYTES_OF_BOTH_WAYS // walk.itemsize)
    warps = warps_for(x_block * r_block, per_thread, most=device.threads_per_block // 32 or 32)
    if _FEW_PROGRAMS * (rows // x_block) <= device.multiprocessors and x_block * r_block >= _LEAST_OF_FEW:
        warps = max(warps, warps_for(x_block * r_block, 1, most=_WARPS_OF_FEW))
    if goes_along and x_block == 1 and rows <= device.multiprocessors:
        # No multiprocessor has a second one. On an H200 a sum and its layer norm, 128 rows of 768 float32, take 2.5 us
        # by one vector of each thread, 2.8 by two.
        warps = max(warps, warps_for(r_block, VECTOR_BYTES // walk.itemsize, most=_WARPS_OF_FEW))
    needed = live_registers(program) * (x_block * r_block // (warps * 32)) + REGISTERS_FOR_ADDRESSES
    while warps > 4 and needed > device.registers_per_multiprocessor // (warps * 32):
        # Too many threads for the registers: fewer threads may have more each, up to 255.
        warps //= 2
        needed = 2 * (needed - REGISTERS_FOR_ADDRESSES) + REGISTERS_FOR_ADDRESSES
    axes = (Axis("x", program.space.x, x_block, is_scalar=x_block == 1), Axis("r", program.space.r, r_block))
    return Plan("persistent", program, axes, warps)


def _plan_looped(program: Program, walk: Walk, is_shared: bool, device: Device) -> Plan:
    """`is_shared` says that several programs may share a row where rows alone do not fill the device. Where a tensor is
    walked along x and another one along r, a tile has whole lines of both."""
    rows, size = hint(program.space.numel), expected_length(program.space.reduction_numel)
    is_filled = (is_shared and not program.across) or rows >= ROWS_OF_LINES * device.multiprocessors
    has_rows = walk.is_outer or (walk.is_mixed and not program.scans and is_filled)
    accumulators = sum(len(section.reductions) for section in program.sections)
    is_apart = takes_two = False
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
        if most == 4096 and not is_shared and rows >= device.multiprocessors and _reads_halves_in_vectors(program):
            # Two accesses of 16 bytes a thread. On an H200 a group norm in two passes takes 56 us so, 58 by one.
            most, takes_two = 8192, True
        is_apart = _reads_apart(program)
        r_block = min(_BLOCK_APART if is_apart else most, next_power_of_two(size))
    per_thread = 16 if has_rows and is_shared else 2 if is_apart else 8
    if walk.is_mixed and rows >= 8 * device.multiprocessors and reads_tables_for_each_row(program):
        x_block, r_block, per_thread = _ROWS_OF_TABLES, min(_ALONG_TABLES, r_block * x_block), 8
    finds = any(s.op == "reduce" and str(s.value).startswith("arg") for s in program.statements)
    is_carrying = carries(program) or finds
    if is_shared and rows < device.multiprocessors and stores_elements(program) and not (has_rows or is_apart):
        # On an H200 8,388,608 energies and their sum take 28.8 us so, 30.0 by blocks of 4,096 and 512 threads; and
        # 33,554,432 float16 as float32, and whether all are finite, 59.8 and 61.8.
        r_block = min(r_block, _BLOCK_OF_STORES)
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
    is_long = length_of(program.statements) >= LONG_ROW and not stores_elements(program)
    if is_long and is_shared and rows < device.multiprocessors and x_block == 1 and not (is_carrying or is_apart):
        # On an H200 the sum of squares of differences of log1p of 16,777,216 takes 60 us by eight elements a thread
        # (40 registers), and TorchInductor's, of four elements, 38.
        r_block, per_thread = min(r_block, _BLOCK_OF_LONG), _OF_LONG
        axes = (axes[0], replace(axes[1], block=r_block))
    plan = Plan("looped", program, axes, warps_for(x_block * r_block, per_thread, most=16))
    is_alone = not (has_rows or is_shared or takes_two) and rows >= _FILLING * device.multiprocessors
    return leaving_room(plan, device) if is_alone and x_block == 1 and not program.scans else plan


#: Rows of a program, and elements of each at a time, that read the same small tables. On an H200 the forces between
#: 4,096 bodies take 46 us so, 69 by 32 rows and 64 elements, 114 by one row.
_ROWS_OF_TABLES, _ALONG_TABLES = 8, 128

#: Rows for each multiprocessor from which on their programs keep it busy, however few elements a thread has.
_ROWS_AT_ONCE = 2

#: Elements of a block of rows that are read with gaps, two for each of many threads.
_BLOCK_APART = 1024

#: Elements of a block of large code, and of a thread: the registers of eight would leave room for fewer programs than
#: the row is shared among, and some would wait for the rest.
_BLOCK_OF_LONG, _OF_LONG = 2048, 4

#: The same of a row that is stored as well, where programs share it.
_BLOCK_OF_STORES = 1024


def _reads_halves_in_vectors(program: Program) -> bool:
    """Whether rows are of one tensor of half types, and all begin where vectors of 16 bytes do. On an H200 a layer norm
    of 1,024 rows of 40,001 bfloat16 takes 81 us by blocks of 4,096, 108 by 8,192."""
    loads = {(s.buffer, s.index) for s in program.statements if s.op == "load" and s.level == "r"}
    itemsizes = [program.storage[buffer or ""].itemsize for buffer, _ in loads]
    return itemsizes in ([1], [2]) and is_multiple(program.space.reduction_numel, VECTOR_BYTES // itemsizes[0])


def _reads_apart(program: Program) -> bool:
    """Whether rows are read with gaps, such as one of four neighbours after the other: lanes then follow each other
    closely in memory only where each takes few elements. On an H200 the sum of smooth L1 losses of 1,048,576 boxes
    takes 20 us by two elements a thread, 28 by four, 45 by eight."""
    last = program.space.r[-1]
    steps = [a.index.stride(last) for a in accesses_of(program) if last in a.index.dims]
    return 2 * sum(step not in (0, 1, -1) for step in steps) > len(steps)
