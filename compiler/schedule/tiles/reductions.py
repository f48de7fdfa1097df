"""Tiles of reductions: a row in registers, in blocks, or shared among programs, by what fits and fills the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from compiler.devices import SECTOR, WARP, Device
from compiler.ir.lazy import lazy
from compiler.ir.size import hint, is_multiple, known, next_power_of_two
from compiler.schedule.group import Group, Space
from compiler.schedule.program.build import fast_program, program_of
from compiler.schedule.program.fast_math import fast_statements
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.program.rest import rest_apart
from compiler.schedule.program.single_pass import in_single_pass
from compiler.schedule.program.statements import passes_before, sections_of
from compiler.schedule.tiles.across import joins_rows_last, plan_across
from compiler.schedule.tiles.columns import (
    SHORT,
    Walked,
    columns_of,
    expected_length,
    plan_of_columns,
    streamed_plan,
    walked_by,
)
from compiler.schedule.tiles.cooperative import (
    cooperative_reduction,
    exchanges_floats,
    may_cooperate,
)
from compiler.schedule.tiles.lane_parts import plan_in_parts
from compiler.schedule.tiles.lengths import LONG_ROW, length_of
from compiler.schedule.tiles.look_back import Chunks, bytes_of_scans, chunks_of, may_look_back
from compiler.schedule.tiles.passes import passes_over_r
from compiler.schedule.tiles.plan import BYTES_PER_THREAD, Axis, Plan, warps_for
from compiler.schedule.tiles.programs import (
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
from compiler.schedule.tiles.registers import (
    REGISTERS_FOR_ADDRESSES,
    carries,
    leaving_room,
    live_registers,
    loading_ahead,
    r_sections,
)
from compiler.schedule.tiles.shared import evicts_first, shared_rows
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

#: Rows for each multiprocessor from which on tiles of whole lines both ways, which have 32 of them, keep it busy
#: without sharing rows. On an H200 two cross entropies of 4,096 x 4,096 scores, along both, and their gradient take
#: 125 us by 128 programs of such tiles, 98 in kernels of their own.
_ROWS_OF_LINES = 64

#: Rows for each multiprocessor from which on none of them is idle for long.
_FILLING = 2


class _Reduction:
    """A group with reduction loops as rules of tiles ask about it. Each form of its program is made when a rule first
    asks for it: a scheduler weighs many groups, most of which are too long to be held, or certainly fit."""

    def __init__(self, group: Group, storage: Mapping[str, torch.dtype], device: Device) -> None:
        self.group, self.storage, self.device = group, storage, device
        r_dims, x_dims = frozenset(group.space.r), group.space.x
        accesses = [a for a in accesses_of(self._looped) if not a.index.dims.isdisjoint(r_dims)]
        x_unit, r_unit = unit_bytes(accesses, x_dims), unit_bytes(accesses, group.space.r)
        x = with_last(x_dims, fastest(x_dims, x_unit)) if x_dims else ()
        # A scan is one in the order of its loops.
        r = group.space.r if group.has_scan else with_last(group.space.r, fastest(group.space.r, r_unit))
        self.space = Space(x, r)
        itemsize = min((a.itemsize for a in accesses), default=4)
        self.walk = Walk(r_unit[r[-1]], x_unit[x[-1]] if x else 0, itemsize)

    @lazy
    def _statements(self) -> list[Statement]:
        return fast_statements(self.group, self.storage)

    @lazy
    def _single_pass(self) -> Callable[[list[Statement]], list[Statement]] | None:
        group = self.group
        return in_single_pass(group.single_pass, group.space.reduction_numel) if group.single_pass else None

    @lazy
    def _looped(self) -> Program:
        if self._single_pass is None:
            return program_of(self.group, self._statements, self.storage)
        return fast_program(self.group, self.storage, rewrite=self._single_pass)

    @lazy
    def looped(self) -> Program:
        """Pass by pass, with its relative sums in the pass of what they are relative to."""
        return replace(self._looped, space=self.space)

    @lazy
    def persistent(self) -> Program:
        """With all of a row at hand, each value once."""
        program = program_of(self.group, self._statements, self.storage, is_persistent=True)
        return replace(program, space=self.space)

    @lazy
    def exchanged(self) -> Program:
        """The same with relative sums, where a row is held by several programs that exchange what they reduce."""
        if self._single_pass is None:
            return self.persistent
        program = fast_program(self.group, self.storage, is_persistent=True, rewrite=self._single_pass)
        return replace(program, space=self.space)

    @lazy
    def passes(self) -> int:
        """How many passes it takes with nothing at hand."""
        return len(r_sections(self.looped))

    @lazy
    def fits_registers(self) -> bool:
        """Whether all of r may be held in registers. For one pass nothing is gained beyond a block's worth of r."""
        size, walk, passes = self.group.space.reduction_numel, self.walk, self._plain_passes
        if not isinstance(size, int):
            return False  # a later call may have more
        if self.goes_across:
            return size <= SHORT or (size <= _LONGEST_OUTER and passes > 1)
        padded = next_power_of_two(size)
        if (passes == 1 and size > 4096) or padded > _LONGEST_PERSISTENT:
            return False
        # Where x is contiguous in memory too, a block of it is held at once, so that both directions coalesce.
        rows = next_power_of_two(max(hint(self.group.space.numel), 1))
        points = min(COALESCED_POINTS, rows) if walk.is_mixed else 1
        registers = self.device.registers_per_multiprocessor
        budget = registers * 3 // 4 if registers else 49152
        return padded * points <= budget and padded * live_registers(self.persistent) * points <= budget

    @lazy
    def _plain_passes(self) -> int:
        if self._single_pass is None:
            return self.passes
        sections = sections_of(self._statements, passes_before(self._statements), is_persistent=False)
        return sum(section.level == "r" for section in sections)

    @property
    def goes_across(self) -> bool:
        """Whether neighbours in memory are different rows, and nothing much lies along r."""
        return self.walk.is_outer and not self.walk.is_mixed

    @property
    def goes_along(self) -> bool:
        """Whether neighbours in memory are elements of one row, and nothing much lies along x."""
        return not (self.walk.is_outer or self.walk.is_mixed)

    @lazy
    def walked(self) -> Walked:
        """What is read of columns."""
        return walked_by(self.group, self.storage)

    @lazy
    def held_columns(self) -> Plan | None:
        """Columns that programs hold, if that gains something."""
        passes = passes_over_r(self.group) if self.goes_across else ()
        columns = columns_of(self.group, passes, self.walked, self.device) if len(passes) > 1 else None
        return None if columns is None else plan_of_columns("persistent", self.persistent, columns)


def plan_reduction(group: Group, storage: Mapping[str, torch.dtype], device: Device) -> Plan:
    """The plan for a group with reduction loops."""
    reduction = _Reduction(group, storage, device)
    plan, walk = _plan_reduction(reduction), reduction.walk
    is_both = walk.is_mixed and plan.axes[0].block * walk.itemsize >= SECTOR
    plan = replace(plan, lanes="both" if is_both else "x" if walk.is_outer else "r")
    return replace(plan, evicts_first=True) if plan.evicts_first or evicts_first(plan, device) else plan


def _plan_reduction(of: _Reduction) -> Plan:
    group, device = of.group, of.device
    if may_look_back(group):
        chunks = chunks_of(hint(of.space.numel), known(of.space.reduction_numel), bytes_of_scans(group), device)
        if chunks is not None:
            return _plan_look_back(of.persistent, chunks)
    team = _plan_cooperative(of) if may_cooperate(group) and not of.walk.is_mixed and of.passes > 1 else None
    if team is not None:
        return team
    if group.across:
        return _plan_both_ways(of)
    if of.held_columns is not None:
        return of.held_columns
    if of.fits_registers:
        return _plan_held(of)
    # Not in several passes: the last program alone knows the result of the first.
    if of.passes == 1 and not group.has_scan:
        plan = _plan_of_shares(of)
        return loading_ahead(plan, device) if plan.kind == "looped" and carries(of.looped) else plan
    if of.goes_across and not group.has_scan:
        return streamed_plan(of.looped, group, of.walked, False, carries(of.looped), device)
    return _plan_looped(of.looped, of.walk, False, device)


def _plan_both_ways(of: _Reduction) -> Plan:
    """Of a group that is reduced across x too. Nobody shares the rows of several passes, so those of columns are in
    narrow blocks, for enough programs."""
    whole, device = of.held_columns, of.device
    is_held = whole is not None or of.fits_registers or any(s.level == "r" for s in of.looped.across)
    if of.passes == 1 and not is_held and joins_rows_last(of.looped):
        shared = _plan_of_shares(of)
        if shared.kind == "split":
            return replace(shared, parts=known(shared.axes[0].blocks))
    if whole is not None:
        plan = whole
    elif not is_held:
        plan = _plan_looped(of.looped, of.walk, of.passes == 1, device)
    else:
        in_parts = plan_in_parts(of.group, of.storage, of.persistent, device) if of.goes_along else None
        plan = in_parts or _plan_persistent(of.persistent, of.walk, device)
    return plan_across(plan, of.walk, whole is not None, device)


def _plan_held(of: _Reduction) -> Plan:
    """Of rows that fit registers."""
    program = of.persistent
    if of.goes_along:
        in_parts = plan_in_parts(of.group, of.storage, program, of.device)
        if in_parts is not None:
            return in_parts
        apart = rest_apart(of.group)
        if apart is not None:
            main = fast_program(of.group, of.storage, is_persistent=True, rewrite=apart.rewrite)
            program = replace(main, space=Space(of.space.x, (apart.main,)))
    return _plan_persistent(program, of.walk, of.device)


def _plan_look_back(program: Program, chunks: Chunks) -> Plan:
    """Programs that have a chunk of a row each, and scan it after what those before them come to."""
    axes = (Axis("x", program.space.x, 1, is_scalar=True), Axis("r", program.space.r, chunks.length))
    return Plan("look_back", program, axes, chunks.warps, splits=chunks.count, team_size=chunks.of_group, chunks=chunks)


def _plan_of_shares(of: _Reduction) -> Plan:
    """A loop of one pass, by several programs to a row where rows alone do not fill the device."""
    if of.goes_across:
        return streamed_plan(of.looped, of.group, of.walked, True, carries(of.looped), of.device)
    return shared_rows(_plan_looped(of.looped, of.walk, True, of.device), of.device)


def _plan_cooperative(of: _Reduction) -> Plan | None:
    """A team of programs for each row, if its parts fit into registers and nothing is stored for a row as a whole
    before its first reduction: that might overwrite what another program of the team still has to read. What one
    program holds needs no team, unless rows are so few that multiprocessors would have none."""
    rows, length = hint(of.space.numel), known(of.space.reduction_numel)
    if rows >= _FILLING * of.device.multiprocessors and not of.walk.is_outer and of.fits_registers:
        return None
    loads = [{s.number for s in section.statements if s.op == "load"} for section in r_sections(of.looped)]
    held = sum(sum(number in of_pass for of_pass in loads) > 1 for number in set[int]().union(*loads))
    itemsize, floats = _loaded_itemsize(of.looped, of.walk), exchanges_floats(of.group)
    team = cooperative_reduction(rows, length, held, itemsize, of.walk.is_outer, of.device, floats)
    if team is None:
        return None
    program = of.exchanged
    first = next(place for place, section in enumerate(program.sections) if section.level == "r")
    early = [s for section in program.sections[: first + 1] for s in section.statements if s.op == "store"]
    if any(s.level == "x" for s in early):
        return None
    x_axis = Axis("x", program.space.x, team.x_block, is_scalar=team.x_block == 1)
    axes = (x_axis, Axis("r", program.space.r, team.r_block))
    return Plan(
        "team", program, axes, team.warps, splits=team.size, chunk=team.share, team=team,
        most_registers=team.registers if team.is_cluster else 0,
    )  # fmt: skip


def _loaded_itemsize(program: Program, walk: Walk) -> int:
    """The bytes of the narrowest element that is loaded for each point of r."""
    loads = (program.storage[s.buffer or ""].itemsize for s in program.statements if s.op == "load" and s.level == "r")
    return min(loads, default=walk.itemsize)


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
    is_filled = (is_shared and not program.across) or rows >= _ROWS_OF_LINES * device.multiprocessors
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
