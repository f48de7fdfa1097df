"""How large programs are, where not their memory but their number, or their waiting for each other, tells the time."""

from __future__ import annotations

from compiler.codegen.program import Program, closure
from compiler.codegen.triton.walk import accesses_of
from compiler.devices import Device
from compiler.ir.size import hint
from compiler.schedule.cost.work import NEAR_CACHE

#: Neighbouring points of x that a reduction takes together where x is contiguous: whole sectors of memory.
COALESCED_POINTS = 32

#: How long a device takes to start a program: 131,072 take 84 us on an H200, one after another, whatever their size is.
_PROGRAM_US = 0.00064

#: Elements of a block of a scan.
_SCANNED = 1024


def is_fed_by(programs: float, program: Program, device: Device) -> bool:
    """Whether a device starts so many programs in less time than its memory takes to move what they touch."""
    bytes_us = sum(access.bytes for access in accesses_of(program)) / device.bandwidth * 1e6
    return programs * _PROGRAM_US <= bytes_us


def block_of_scan(x_block: int, r_block: int, is_outer: bool) -> tuple[int, int]:
    """Small programs, of which others go on while the warps of one wait for each other's sums. On an H200 running sums
    of 4,096 rows of 8,192 int64 take 112 us by blocks of 1,024, 122 by 2,048, 252 by 4,096; those of 64 x 512 x 512
    float32 along the middle 47 us by blocks of 32 x 32, 76 by 64 x 32."""
    if not is_outer:
        return x_block, min(r_block, _SCANNED // x_block)
    if x_block < COALESCED_POINTS:
        return x_block, r_block  # few columns are few programs, which go through long blocks
    return COALESCED_POINTS, min(r_block, _SCANNED // COALESCED_POINTS)


def reads_rows_at_loaded_places(program: Program) -> bool:
    """Whether rows are read that other loads tell of: threads then wait twice, and should ask for more at a time."""
    by_number = {s.number: s for s in program.statements}
    places = [
        place.value for s in program.statements if s.op == "load" and s.level == "r" and s.index is not None
        for place in s.index.indirections
    ]  # fmt: skip
    return any(by_number[number].op == "load" for number in closure(places, by_number))


def reads_tables_for_each_row(program: Program) -> bool:
    """Whether all that rows are made of is in tables that the near caches hold, so that the walk through memory tells
    nothing of how a tile should lie."""
    loads = [s for s in program.statements if s.op == "load" and s.level == "r" and s.index is not None]
    tables: dict[str, int] = {}
    for s in loads:
        assert s.buffer is not None and s.index is not None
        if s.index.indirections:
            return False
        size = (hint(s.index.bounds[1]) + 1) * program.storage[s.buffer].itemsize
        tables[s.buffer] = max(size, tables.get(s.buffer, 0))
    stores = any(s.op == "store" and s.level == "r" for s in program.statements)
    return not stores and sum(tables.values()) <= NEAR_CACHE
