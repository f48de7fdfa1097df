"""The size of programs where their number or their synchronisation decides the time, not memory."""

from __future__ import annotations

from compiler.devices import WARP, Device
from compiler.ir.index import Index
from compiler.ir.size import hint, known, next_power_of_two
from compiler.schedule.cost.work import NEAR_CACHE
from compiler.schedule.program.program import Program, closure
from compiler.schedule.tiles.text import is_hidden_by_memory, length_along_rows
from compiler.schedule.tiles.vectors import VECTOR_BYTES, moves_of
from compiler.schedule.tiles.walk import accesses_of

#: Neighbouring points of x that a reduction takes together where x is contiguous: whole sectors of memory.
COALESCED_POINTS = 32

#: How long a device takes to start a program: 131,072 take 84 us on an H200, one after another, whatever their size is.
_PROGRAM_US = 0.00064

#: Bytes and elements of the rows that one warp holds, how many rows those are at the most, values of each element that
#: live at a time, and programs of each multiprocessor that keep it busy so.
_BYTES_OF_A_WARP, _OF_A_WARP, _ROWS_OF_A_WARP, _LIVE, _PROGRAMS_OF_A_WARP = 2048, 1024, 8, 6, 16
#: Elements of the shortest row that one warp holds, and of one that is loaded one element at a time: the lanes of two
#: warps lie along that otherwise; and how many times as long as its bytes such a row takes at the least.
_SHORTEST_ROW, _SHORTEST_ALONE, _AS_LONG_AS_BYTES = 128, 64, 4

#: Instructions of a warp that has whole rows.
_LONGEST_TEXT = 4000

#: Elements of a block of a scan.
_SCANNED = 1024


def is_fed_by(programs: float, program: Program, device: Device) -> bool:
    """Whether a device starts so many programs in less time than its memory takes to move what they touch."""
    bytes_us = sum(access.bytes for access in accesses_of(program)) / device.bandwidth * 1e6
    return programs * _PROGRAM_US <= bytes_us


def rows_of_a_warp(program: Program, live: int, itemsize: int, device: Device) -> int:
    """How many rows one warp holds, with `live` registers for each element, where that is better than several warps:
    rows are short, and leave a part of their blocks empty or are loaded one element at a time. A warp waits for no
    other to have the sum of a row, and has as much under way as several would. 0 elsewhere.

    On an H200, in us: a softmax of rows of 513 float32 takes 55 so, 59 by four warps for two rows; of 197 bfloat16 38
    and 56; a layer norm of 768 of three embeddings 17 and 22; the means of 196 cubes 14 and 16. Rows that fill their
    blocks, and begin where vectors do, take as long either way; a layer norm of 1,000 float16 36 and 35. Entropies of
    rows of 512 float32 take 63 so and 78 by four warps for two rows, of 1,024 29 and 33; a layer norm of GELU of 1,024
    bfloat16 54 and 61. A softmax of 150,528 rows of 49 float16 with a bias that is looked up takes 31 us by one warp
    for eight rows, 45 by two, and 44 by four for 32. The gradients of the cosines of 16,384 rows of 768 bfloat16, with
    six registers for each element, 26 by one warp, 36 by two and 37 by four."""
    size, rows = known(program.space.reduction_numel), hint(program.space.numel)
    r_block = next_power_of_two(size)
    gathers = any(s.level == "r" for s in program.across)  # sums for each r are as many values again
    if not _SHORTEST_ALONE <= r_block <= _OF_A_WARP or live > _LIVE or gathers:
        return 0
    moves = moves_of(program, program.space.dims)
    is_padded = 8 * size <= 7 * r_block if r_block >= _SHORTEST_ROW else size % 2 == 1
    is_ragged = is_padded or 2 * moves.alone > moves.all
    has_reason = is_ragged or (r_block >= _SHORTEST_ROW and is_long_work(program, itemsize, device))
    for elements in (_BYTES_OF_A_WARP // max(itemsize, 2), _OF_A_WARP) if has_reason else ():
        at_once = min(max(elements // r_block, 1), _ROWS_OF_A_WARP)
        if at_once * r_block // WARP * length_along_rows(program) > _LONGEST_TEXT:
            continue
        is_enough = rows >= at_once * _PROGRAMS_OF_A_WARP * device.multiprocessors
        # Short rows that are loaded one element at a time take longer than their bytes: 31 us above, of 6.
        started = rows / at_once / (1 if r_block >= _SHORTEST_ROW else _AS_LONG_AS_BYTES)
        if is_enough and is_fed_by(started, program, device):
            return at_once
    return 0


def is_long_work(program: Program, itemsize: int, device: Device) -> bool:
    """Whether there is more to compute for rows than memory hides, and a row is more than one vector of a warp's, so
    that its sums go through several warps, or several times through one."""
    r_block = next_power_of_two(known(program.space.reduction_numel))
    return r_block * itemsize > WARP * VECTOR_BYTES and not is_hidden_by_memory(program, device)


#: Elements of a row that is short, accesses from which on a program has many, and registers for the values of all.
_SHORT_ROW, _MANY_ACCESSES, _REGISTERS_FOR_ACCESSES = 8, 16, 64


def elements_of_many_accesses(program: Program) -> int:
    """Elements for each thread where rows of a few elements have many loads and stores, whose values all live at a
    time, such as the sides of a box and their gradients; 0 for others."""
    accesses = sum(s.op in ("load", "store") for s in program.statements)
    is_short = next_power_of_two(known(program.space.reduction_numel)) <= _SHORT_ROW
    if not is_short or accesses <= _MANY_ACCESSES:
        return 0
    return max(next_power_of_two(_REGISTERS_FOR_ACCESSES // accesses + 1) // 2, 2)


def block_of_scan(x_block: int, r_block: int, is_outer: bool) -> tuple[int, int]:
    """Small programs, of which others go on while the warps of one wait for each other's sums. On an H200 running sums
    of 4,096 rows of 8,192 int64 take 112 us by blocks of 1,024, 122 by 2,048, 252 by 4,096; those of 64 x 512 x 512
    float32 along the middle 47 us by blocks of 32 x 32, 76 by 64 x 32."""
    if not is_outer:
        return x_block, min(r_block, _SCANNED // x_block)
    if x_block < COALESCED_POINTS:
        return x_block, r_block  # few columns are few programs, which go through long blocks
    return COALESCED_POINTS, min(r_block, _SCANNED // COALESCED_POINTS)


def reads_rows_at_loaded_indices(program: Program) -> bool:
    """Whether rows are read that other loads tell of: threads then wait twice, and should ask for more at a time."""
    by_number = program.by_number
    loads = [s.index for s in program.statements if s.op == "load" and s.level == "r" and s.index is not None]
    return any(
        any(by_number[n].op == "load" for n in closure((p.value for p in index.indirections), by_number))
        and not _is_element(index, program)
        for index in loads
    )


def reads_near_tables(program: Program) -> bool:
    """Whether rows are made of tables that the near caches hold, as those of all pairs of some bodies are: how a tile
    lies in memory then does not matter."""
    tables: dict[str, int] = {}
    for s in program.statements:
        if s.level != "r" or s.index is None or s.buffer is None:
            continue
        if s.op == "store" or s.index.indirections:
            return False
        size = (hint(s.index.bounds[1]) + 1) * program.storage[s.buffer].itemsize
        tables[s.buffer] = max(size, tables.get(s.buffer, 0))
    return sum(tables.values()) <= NEAR_CACHE


def _is_element(index: Index, program: Program) -> bool:
    """Whether the index of each element in a row of its own is looked up, and not where a row or a column begins."""
    has_own = any(program.by_number[atom.value].level == "r" for atom in index.indirections)
    return has_own and bool(index.dims) and not any(index.stride(dim) in (1, -1) for dim in program.space.dims)
