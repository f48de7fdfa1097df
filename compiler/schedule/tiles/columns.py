"""Reductions across memory, whose neighbours there are different rows: columns of a matrix, channels of an image.

    held      x: 32 columns, r: all of it       each element is read once, and stays in the registers of a program
    streamed  x: 32 columns, r: 64 at a time    one pass, or several; columns that are few are shared by programs

Lanes lie along the columns, whole lines of the cache in each row, and the threads of a program share its rows, which
they join through shared memory in the end. Figures are of an H200, 32-bit elements unless told:

    softmax over the middle of 64 x 256 x 2048        held by 32 columns 71 us, by 8 (one sector) 97; streamed 108
    softmax over the middle of 61 x 37 x 4,099        held by 128 columns 21.8 us, by 64 22.6, by 32 28.0, by 16 32
    mean and deviation of 128 x 512 x 256             held, 64 elements a thread 27 us, 32: 28, 8: 32
    sum of 2,048 x 16,384 bfloat16                    128 bytes a row 30 us, 256: 42
    sum of 32,768 x 2,048 bfloat16, with weights      32 warps on a multiprocessor 51 us, two waves of programs 62
    a gate's gradients of 4,096 x 4,096 bfloat16,
    stored, and the sum of one                        8 elements a thread 47.5 us (by 8 warps 49.7), 16: 57.7
    softmax of 8,192 x 4,096 bfloat16, along columns  128 programs of 1,024 threads 77 us, 256 of 256: 109
    norms of 16 x 784 x 768, along the middle         32 bytes a thread 18.7 us, 64: 22.8
    gradient of GELU and sums, 16,384 x 3,072 bfloat16    8 elements a thread 88 us, 16: 105
    sums of 64 x 256                                  in one step by 32 programs 5.6 us, each shared by two: 7.1
    maxima of 128 x 300 x 500 along the middle, what
    they are of stored                                512 bytes a row 50 us, 256: 52 to 56, 128: 59 to 65
    means of 16 x 24 x 32 x 40 x 48 along two loops   256 bytes a row 33.3 us, 128: 35.1
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.devices import SECTOR, WARP, Device
from compiler.ir.size import Integer, hint, known, last_power_of_two, next_power_of_two
from compiler.schedule.group import Space
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.plan import LoopedPlan, SplitPlan, row_axes
from compiler.schedule.tiles.registers import carries, finds_positions, stores_elements
from compiler.schedule.tiles.walk import Access, accesses_of
from compiler.schedule.vectors import VECTOR_BYTES

#: Bytes of a row that a program takes: whole lines of the cache, and where columns are few, whole sectors.
LINE = 128
#: Lines of rows that do not begin where lines do, and of those that are stored too: what a program reads and writes of
#: a row has two ends, each of which is part of a line that another one moves as well.
RAGGED_LINES, RAGGED_STORED = 2, 4
#: Columns that are held in one program, and those of them where they are long; and where they are short, rows do not
#: begin where lines do, and each multiprocessor has so many programs all the same.
HELD_COLUMNS, LONG_COLUMNS, WIDE_COLUMNS, MANY_PROGRAMS = 32, 16, 128, 4
#: Elements of all tensors together that a thread holds, and a program: two of these run on a multiprocessor at a time.
HELD_ELEMENTS, HELD_BY_PROGRAM = 64, 16384
#: Bytes of all tensors together that a thread has under way in a loop of one pass, and the least of one tensor.
BYTES_UNDER_WAY, LEAST_BYTES = 64, 32
#: Elements that it takes of several tensors, where it computes much for each and stores it.
ELEMENTS_OF_MUCH = 8
#: Elements that a thread takes at a time of a loop in several passes.
ELEMENTS_OF_A_PASS = 8
#: Values of all parts of a column that a thread of the last program holds as it joins them.
MOST_JOINED, MOST_CARRIED = 64, 32
#: Elements of all columns, for each multiprocessor, that are so few that no two programs share a column, and those of
#: one program; a thread of it takes so many, and it has so many warps at the most.
FEW_ELEMENTS, FEW_BY_PROGRAM, FEW_BY_THREAD, FEW_WARPS = 1024, 4096, 4, 16
#: Warps of a program; few where columns are short.
LEAST_WARPS, WARPS, MOST_WARPS = 2, 4, 32
#: Programs of each multiprocessor that need not share what they store.
ENOUGH_PROGRAMS = 2
#: A loop has so many steps at the least before its blocks grow, and so many before its threads take more at a time.
LEAST_STEPS, MANY_STEPS = 8, 16

#: Rows of columns that are so short are held without further ado, for one pass too.
SHORT = 32
#: Weighted operations for an element that are much: a gate's gradients by sigmoid and tanh take 46.
MUCH = 28


@dataclass(frozen=True)
class Columns:
    """A program takes `x_block` columns, `r_block` points of each at a time, by `warps` warps."""

    x_block: int
    r_block: int
    warps: int


@dataclass(frozen=True)
class Walked:
    """What is read along columns: `tensors` of them differ from column to column, in elements of up to `itemsize`
    bytes. In ragged ones rows do not begin where lines of the cache do, but where vectors may; those that are off lines
    may begin anywhere."""

    tensors: int
    itemsize: int
    is_ragged: bool = False
    is_stored: bool = False
    is_off_lines: bool = False


def held_columns(rows: int, length: int, walked: Walked, device: Device) -> Columns | None:
    """How programs hold all of `rows` columns of `length` elements; None where they are too long for that."""
    padded = next_power_of_two(length)
    words = max(walked.tensors, 1) * max(walked.itemsize // 4, 1)
    x_block = HELD_COLUMNS
    if padded * x_block * words > HELD_BY_PROGRAM and 4 <= walked.itemsize:
        x_block = LONG_COLUMNS
    if padded * x_block * words > 2 * HELD_BY_PROGRAM * device.registers_per_multiprocessor // 65536:
        return None
    x_block = min(x_block, next_power_of_two(rows))
    while x_block > SECTOR // walked.itemsize and rows < x_block * device.multiprocessors:
        x_block //= 2
    elements = max(last_power_of_two(HELD_ELEMENTS // words), 8)
    wide = x_block
    while walked.is_off_lines and HELD_COLUMNS <= wide < WIDE_COLUMNS and 4 * padded * wide * words <= HELD_BY_PROGRAM:
        wide *= 2
    if wide > x_block and rows >= MANY_PROGRAMS * wide * device.multiprocessors:
        x_block, elements = wide, max(elements // 2, 8)
    warps = padded * x_block // (elements * WARP)
    return Columns(x_block, padded, max(min(warps, MOST_WARPS), WARPS))


def streamed_columns(
    rows: int, length: int, walked: Walked, is_shared: bool, is_heavy: bool, computes_much: bool, device: Device
) -> Columns:  # fmt: skip
    """Blocks of columns for loops over their rows. `is_shared` says that there is one pass, so that programs may share
    a column; a heavy one carries several values along for each element, one that `computes_much` stores something of
    what it computes for each."""
    x_block = min(max(LINE // walked.itemsize, 1), next_power_of_two(rows))
    few = _whole_columns(rows, length, walked, device) if is_shared else None
    if few is not None:
        return few
    if is_shared:
        # The parts of fewer columns are joined at a time where each is several values.
        x_block = min(x_block, HELD_COLUMNS) if is_heavy else x_block
        several = is_heavy or walked.tensors > 1
        if walked.is_ragged and not several:
            lines = RAGGED_STORED if walked.is_stored else RAGGED_LINES
            x_block = min(lines * x_block, next_power_of_two(rows))
        bytes_, warps = LEAST_BYTES if several else BYTES_UNDER_WAY, WARPS
        if bytes_ // walked.itemsize * warps * WARP // x_block * MANY_STEPS > length:
            bytes_ = LEAST_BYTES
        if computes_much and walked.tensors > 1:
            bytes_ = min(bytes_, ELEMENTS_OF_MUCH * walked.itemsize)
        r_block = max(bytes_ // walked.itemsize * warps * WARP // x_block, 1)
        while r_block * LEAST_STEPS > length and warps > LEAST_WARPS:
            warps, r_block = warps // 2, r_block // 2
        r_block = min(r_block, next_power_of_two(length))
        warps = x_block * r_block * walked.itemsize // (bytes_ * WARP)
        return Columns(x_block, r_block, max(min(warps, WARPS), 1))
    while x_block > SECTOR // walked.itemsize and 2 * rows < x_block * device.multiprocessors:
        x_block //= 2
    programs = -(-rows // x_block)
    # Few programs are large ones, which hide what each thread waits for.
    warps = MOST_WARPS if programs <= device.multiprocessors else 16 if programs <= 2 * device.multiprocessors else 8
    r_block = min(ELEMENTS_OF_A_PASS * warps * WARP // x_block, next_power_of_two(length))
    return Columns(x_block, r_block, max(min(warps, x_block * r_block // (ELEMENTS_OF_A_PASS * WARP)), 1))


def _whole_columns(rows: int, length: int, walked: Walked, device: Device) -> Columns | None:
    """Whole columns of so few elements that nobody need wait for others that share them; None for more."""
    x_block, r_block = min(max(SECTOR // walked.itemsize, 1), next_power_of_two(rows)), next_power_of_two(length)
    if rows * length > FEW_ELEMENTS * device.multiprocessors or x_block * r_block > FEW_BY_PROGRAM:
        return None
    return Columns(x_block, r_block, max(min(x_block * r_block // (FEW_BY_THREAD * WARP), FEW_WARPS), 1))


def most_parts(tile: Columns, carries: bool) -> int:
    """How many parts of a block of columns the threads of one program join: each holds all of its columns at once, and
    with more of them than this, registers spill. What is carried along are several values. On an H200 a batch norm of
    256 columns of 100,352 rows took 517 us with 896 parts (45,428 spills); its bytes take 25."""
    values = MOST_CARRIED if carries else MOST_JOINED
    return max(values * WARP * tile.warps // tile.x_block, 1)


def shares_of(
    programs: int, r_blocks: int, warps: int, most: int, carries: bool, is_stored: bool, device: Device
) -> int:  # fmt: skip
    """How many programs share a block of columns, of which there are `programs`: as many as give each multiprocessor
    half of the warps that it can hold, or all of them where sums are carried along that wait for each other. Shares
    are alike if they can be: their loops then have as many steps in each, which the assembler can unroll. On an H200
    the variance of 65,536 x 512 takes 50 us so, 65 where the number of steps is not known; and the maxima of 128 x 300
    x 500, which are stored as well (`is_stored`), 53 by shares of ten and nine blocks, 50 by 500 programs that share
    nothing. Norms of 16 x 784 x 768 along the middle, of 25 blocks, take 15.9 us by three shares or four, 17.5 by 2."""
    resident = device.multiprocessors * max(device.threads_per_multiprocessor // WARP, 1) // warps
    if programs == 0:
        return 1
    wanted = (resident if carries else resident // 2) / programs
    limit = min(int(1.5 * wanted), r_blocks // 2, most, 1024)
    least = max(round(0.6 * min(wanted, limit)), 2)
    alike = [shares for shares in range(least, limit + 1) if r_blocks % shares == 0]
    if is_stored and not alike and programs >= ENOUGH_PROGRAMS * device.multiprocessors:
        return 1
    return max(alike, default=max(min(round(wanted), limit), 1))


def streamed_plan(
    program: Program, walked: Walked, is_shared: bool, operations: int, device: Device
) -> LoopedPlan | SplitPlan:
    """Loops over blocks of r, for each of whose elements so many weighted operations are done. In one pass
    (`is_shared`) several programs may share a column."""
    rows, length = hint(program.space.numel), expected_length(program.space.reduction_numel)
    has_sums, computes_much = carries(program), walked.is_stored and operations >= MUCH
    is_heavy = has_sums or finds_positions(program)
    columns = streamed_columns(rows, length, walked, is_shared, is_heavy, computes_much, device)
    plan = LoopedPlan(program, row_axes(program, columns.x_block, columns.r_block), columns.warps)
    if not is_shared or not isinstance(program.space.numel, int):
        return plan
    programs, blocks, most = known(plan.axes[0].blocks), hint(plan.axes[-1].blocks), most_parts(columns, has_sums)
    shares = shares_of(programs, blocks, columns.warps, most, has_sums, walked.is_stored, device)
    return shared_plan(plan, shares)


def shared_plan(plan: LoopedPlan, shares: int) -> LoopedPlan | SplitPlan:
    """Each row shared among so many programs, which take as many blocks each, but for the last one."""
    r_axis = plan.axes[-1]
    if shares < 2 or not isinstance(r_axis.numel, int):
        return plan.shared(shares) if shares > 1 else plan
    chunk = -(-known(r_axis.blocks) // shares) * r_axis.block
    shares = -(-r_axis.numel // chunk)
    return plan.shared(shares, chunk) if shares > 1 else plan


def expected_length(size: Integer) -> int:
    """For the choice of a block: a length that differs from call to call may be small in the first."""
    return size if isinstance(size, int) else max(hint(size), 1024)


def walked_by(program: Program) -> Walked:
    """What a reduction across memory reads."""
    x, r = program.space.x, program.space.r
    reads = accesses_of(replace(program, statements=tuple(s for s in program.statements if s.op == "load")))
    along = [a for a in reads if not (a.index.dims.isdisjoint(x) or a.index.dims.isdisjoint(r))]
    is_off_lines = bool(along) and all(_is_off_lines(a, program.space) for a in along)
    # Rows that begin anywhere move one element at a time, and gain nothing: sums of 33,467 columns of an odd tensor
    # take 28 us by 32 columns, 34 by 64.
    is_ragged = is_off_lines and all(_is_off_lines(a, program.space, VECTOR_BYTES) for a in along)
    itemsize = max((a.itemsize for a in along), default=4)
    return Walked(len(along), itemsize, is_ragged, stores_elements(program), is_off_lines)


def _is_off_lines(access: Access, space: Space, least: int = 1) -> bool:
    """Whether an access goes along rows that are longer than a line of the cache, and begin at multiples of so many
    bytes, but not where lines do."""
    strides = {dim: access.index.stride(dim) for dim in access.index.dims}
    lanes = [dim for dim in space.x if strides.get(dim) == 1]
    steps = [stride for dim, stride in strides.items() if dim not in lanes]
    if len(lanes) != 1 or hint(lanes[0].size) * access.itemsize < LINE:
        return False
    starts = [hint(stride) * access.itemsize for stride in steps if stride is not None]
    return all(start % least == 0 for start in starts) and any(start % LINE != 0 for start in starts)
