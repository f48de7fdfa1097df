"""Tiles of programs that reduce across their rows as well: how many rows each takes, at once and in all."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from compiler.devices import Device
from compiler.ir.size import known, next_power_of_two
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.plan import LoopedPlan, Parts, WholeRows
from compiler.schedule.tiles.registers import (
    ASYNCHRONOUS_COPIES,
    LOADED_AHEAD,
    REGISTERS_FOR_ADDRESSES,
    W,
    carries,
    loading_ahead,
    registers_of_rows,
    registers_of_sums,
)

#: Elements of a row from which on its sums are a burden to those who join them.
_LONG_ROW = 4096

#: Programs of a multiprocessor that hold columns, each after each. On an H200 the mean deviation of 64 x 131,072 takes
#: 18 us by 1,024 programs of 128 threads, 31 by 2,048 of 256.
_HELD_AT_ONCE = 8

#: Programs of a multiprocessor that take several short rows at a time; and of those that take such of half types, or
#: rows that are loaded ahead.
_AT_ONCE, _MOST_AT_ONCE = 2, 3

#: Rows of parts that one program joins without help.
_MOST_PARTS = 32

#: Single values of programs that a thread of the last one joins at the most: it has registers for all of them. On an
#: H200 the mean of what 65,536 rows of 136 float32 come to, and its gradient, take 59 us by 2,048 programs of a warp,
#: 64 by 16,384, and 99 by 512.
_JOINED_BY_A_THREAD = 64

#: Rows that a program takes at the least, where its sums for each r are written: they must be few beside the rows.
_ROWS_OF_A_PART = 16


def plan_across(plan: W, holds_columns: bool, device: Device) -> W:
    """The plan whose programs take several blocks of the rows of `plan`, which keeps r in registers where there are
    sums for each r. It may hold columns, where rows are neighbours in memory."""
    sums_of_rows = any(s.level == "r" for s in plan.program.across)
    before = plan.axes[0]
    if sums_of_rows:
        plan = _in_large_programs(plan, device)
    x_axis = plan.axes[0]
    rows, blocks = known(x_axis.numel), known(x_axis.blocks)
    at_once = max(1, device.threads_per_multiprocessor // (32 * plan.num_warps))
    if sums_of_rows:
        # A second wave of programs would write as many rows of sums again.
        of_program = 32 * plan.num_warps * (plan.most_registers or registers_of_sums(plan))
        at_once = min(at_once, max(1, device.registers_per_multiprocessor // of_program))
        most = at_once if x_axis.block == before.block else _AT_ONCE
        at_once = min(at_once, _MOST_AT_ONCE if plan.most_registers or plan.stages > 1 else most)
        programs = min(blocks, device.multiprocessors * at_once)
        programs = max(min(programs, rows // _ROWS_OF_A_PART), min(blocks, device.multiprocessors))
    else:
        waves = min(at_once, _HELD_AT_ONCE) if holds_columns else 2 * at_once
        programs = min(blocks, waves * device.multiprocessors, _JOINED_BY_A_THREAD * 32 * plan.num_warps)
    chunk = max(-(-blocks // max(programs, 1)), 1) * x_axis.block
    parts = -(-rows // chunk)
    team_size = next_power_of_two(isqrt(parts)) if sums_of_rows and parts > _MOST_PARTS else 0
    plan = replace(plan, parts=Parts(parts, chunk, team_size))
    is_long = sums_of_rows and plan.axes[-1].block >= _LONG_ROW
    return loading_ahead(plan, device) if is_long or (isinstance(plan, LoopedPlan) and carries(plan.program)) else plan


def joins_rows_last(program: Program) -> bool:
    """Whether all that is reduced across x are results of rows, so that a row's programs need not know of other rows:
    the last of them has what is to be gathered."""
    early = {s.number for section in program.sections[: program.first_pass + 1] for s in section.statements}
    return all(s.level == "x" and s.number not in early for s in program.across)


def _spills(plan: WholeRows, device: Device) -> bool:
    """Whether the sums of rows, and what else a thread holds, are clearly more than its share of the registers."""
    threads = 32 * plan.num_warps
    elements = -(-plan.axes[0].block * plan.axes[-1].block // threads)
    return threads * registers_of_rows(plan.program) * elements > device.registers_per_multiprocessor


def _in_large_programs(plan: W, device: Device) -> W:
    """Long rows in as large programs as there are: each writes a row of sums, and somebody has to read them all. On an
    H200 the sums of 8,192 x 8,192 along both axes take 90 us by programs of 1,024 threads and two rows at once, 112 by
    programs of 512 threads and one row."""
    x_axis, r_axis = plan.axes
    threads = device.threads_per_block or 1024
    if r_axis.block < _LONG_ROW:
        return _in_blocks_of_rows(plan, device)
    x_block = max(x_axis.block, min(16 * threads // r_axis.block, next_power_of_two(known(x_axis.numel))))
    x_axis = replace(x_axis, block=x_block, is_scalar=x_block == 1)
    large = replace(plan, axes=(x_axis, r_axis), num_warps=threads // 32)
    if not _spills(large, device):
        return large
    # Two small programs, of which one loads while the other waits for its sums.
    return replace(plan, num_warps=max(4, r_axis.block * plan.axes[0].block // (16 * 32)))


#: Elements of a block of short rows, and warps of its program; elements of the shortest row that is loaded ahead, and
#: bytes of all that is loaded for one.
_BLOCK_OF_ROWS, _WARPS_OF_ROWS = 4096, 8
_LEAST_AHEAD, _LEAST_BYTES_AHEAD = 512, 4096


def _in_blocks_of_rows(plan: W, device: Device) -> W:
    """Short rows of 32-bit elements, and half types in rows that are shorter still, several at a time, so that programs
    wait for their sums less often, and fewer parts are joined, where the registers hold two programs of them. On an
    H200 both passes of a layer norm of 32,768 x 768 float32 take 159 us so, by four rows and 256 programs of 256
    threads, 173 by one row and 1,171 programs of 128; of rows of 2,048 107 and 120; the sums of products of 32,768 x
    1,024 along both axes 111 and 127. With a GELU besides, more values live, and it is 196 and 173. The gradient of an
    RMS norm of 131,072 x 128 bfloat16 takes 40 us by 32 rows and 396 programs of 256 threads, 44 by 264 of them, 57 by
    16 rows and 631 programs of 128; but where all of it is of half types a layer norm of rows of 768 63 and 59."""
    x_axis, r_axis = plan.axes
    rows, x_block = known(x_axis.numel), max(_BLOCK_OF_ROWS // r_axis.block, 1)
    loads = (plan.program.dtype_of(s).itemsize for s in plan.program.statements if s.op == "load")
    is_wide = min(loads, default=0) >= 4
    is_short = is_wide or r_axis.block < _LEAST_AHEAD
    if not is_short or x_block <= x_axis.block or rows < 2 * x_block * device.multiprocessors:
        return _loading_rows_ahead(plan, device)
    axes = (replace(x_axis, block=x_block, is_scalar=False), r_axis)
    in_blocks = replace(plan, axes=axes, num_warps=max(_WARPS_OF_ROWS, plan.num_warps))
    threads = 32 * in_blocks.num_warps
    registers_of_one = registers_of_rows(plan.program) * x_block * r_axis.block + REGISTERS_FOR_ADDRESSES * threads
    if _AT_ONCE * registers_of_one > device.registers_per_multiprocessor:
        return plan
    most = device.registers_per_multiprocessor // (_MOST_AT_ONCE * threads) // 8 * 8
    return in_blocks if is_wide else replace(in_blocks, most_registers=most)


def _loading_rows_ahead(plan: W, device: Device) -> W:
    """One row at a time by many threads, with the next ones on their way to shared memory: a thread then has few sums,
    and while the warps wait for each other's parts of a row, memory does not wait for them. On an H200 the gradient of
    a layer norm of 16,384 x 768, of which 10 bytes are loaded and 6 stored for each element, takes 70 us so, by 396
    programs of 256 threads; 87 with one row ahead, 95 without; 106 by two rows and 631 programs of 128 threads, whose
    184 registers leave room for 264 of them."""
    x_axis, r_axis = plan.axes
    rows, length = known(x_axis.numel), known(r_axis.numel)
    loads = [s for s in plan.program.statements if s.op == "load" and s.level == "r"]
    of_rows = [s for s in loads if s.index is not None and not s.index.dims.isdisjoint(plan.program.space.x)]
    bytes_of_point = sum(plan.program.dtype_of(s).itemsize for s in of_rows)
    held = _MOST_AT_ONCE * (LOADED_AHEAD - 1) * bytes_of_point * r_axis.block
    if (
        r_axis.block < _LEAST_AHEAD
        or bytes_of_point * length < _LEAST_BYTES_AHEAD
        or rows < _ROWS_OF_A_PART * device.multiprocessors
        or any(s.index is not None and s.index.indirections for s in loads)
        or any(s.index is not None and s.index.stride(r_axis.dims[-1]) != 1 for s in of_rows)
        or device.capability < ASYNCHRONOUS_COPIES
        or held > device.shared_per_multiprocessor
    ):
        return plan
    axes = (replace(x_axis, block=1, is_scalar=True), r_axis)
    return replace(plan, axes=axes, num_warps=max(_WARPS_OF_ROWS, plan.num_warps), stages=LOADED_AHEAD)
