"""The tile of a kernel: which loops it spans, how large its blocks are, how many warps run it.

`plan_tile` is a pure function of a group and a device. The shapes it chooses among:

    pointwise            x: blocks along all loops together
    pointwise, 2-D       y, x: where one side walks memory along another loop than the other side (a transpose)
    persistent           x, r: all of r in registers, every value loaded and computed once
    looped               x, r: blocks of r, one loop for each pass
    split                looped over a part of r; the last program to finish combines the parts
    team                 a part of r in registers; the programs of a row exchange what they reduce and go on

What is reduced across x as well makes a program of a persistent or looped plan take several blocks of x; the last
program to finish joins what they gathered (see `across.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt, prod
from typing import Literal

import torch

from compiler.codegen.loops import simplify_loops
from compiler.codegen.program import Program, Section, build_program
from compiler.codegen.single_pass import in_single_pass
from compiler.devices import Device
from compiler.ir.index import Dim, Index
from compiler.ir.size import Integer, ceiling_quotient, hint, is_multiple, known, product
from compiler.schedule.group import Group, Space
from compiler.schedule.shape import may_be_in_teams
from compiler.schedule.team import team_for

Kind = Literal["pointwise", "persistent", "looped", "split", "team", "product"]

#: A longer row never fits the registers of a multiprocessor beside what else a kernel holds.
_LONGEST_PERSISTENT = 32768
#: Neighbouring points of x that a reduction takes together where x is contiguous: whole sectors of memory.
_COALESCED_POINTS = 32
#: Bytes that memory moves at once.
_SECTOR = 32
#: Bytes of one tensor that a thread moves: two 16-byte accesses in flight hide the latency of one.
_BYTES_PER_THREAD = 32
#: Threads of a multiprocessor share its registers; so many of them are for addresses and temporaries.
_REGISTERS_FOR_ADDRESSES = 24


@dataclass(frozen=True)
class Axis:
    """One axis of the tile: `dims` (slowest first) run through together in blocks of `block`.

    A scalar axis has one element a program and no place in the shape of values."""

    name: Literal["x", "y", "r", "b", "m", "n", "k"]
    dims: tuple[Dim, ...]
    block: int
    is_scalar: bool = False

    @property
    def numel(self) -> Integer:
        return product(dim.size for dim in self.dims)

    @property
    def blocks(self) -> Integer:
        return ceiling_quotient(self.numel, self.block)

    @property
    def is_exact(self) -> bool:
        """Whether the blocks cover it without a rest, so that no mask is needed."""
        return self.numel != 0 and is_multiple(self.numel, self.block)

    @property
    def block_name(self) -> str:
        return f"{self.name.upper()}BLOCK"


@dataclass(frozen=True)
class Plan:
    """What the renderer needs: `program` over the loops of `axes`. `splits` programs share one row of `split` and of
    `team` plans, each taking `chunk` of r (0: a share that the kernel computes, where r differs from call to call).
    Where something is reduced across x there are `parts` programs, each of which takes `chunk` rows, in teams of
    `team_size` if that is not 0."""

    kind: Kind
    program: Program = field(hash=False)
    axes: tuple[Axis, ...]
    num_warps: int
    splits: int = 1
    chunk: int = 0
    parts: int = 0
    team_size: int = 0

    @property
    def teams(self) -> int:
        return -(-self.parts // self.team_size) if self.team_size else 0

    @property
    def grid(self) -> Integer:
        if self.parts:
            return self.parts
        return product(axis.blocks for axis in self.axes if axis.name != "r") * self.splits

    @property
    def vectors(self) -> tuple[Axis, ...]:
        """The axes that values have, in order."""
        return tuple(axis for axis in self.axes if not axis.is_scalar)

    @property
    def needs_wide_offsets(self) -> bool:
        """Whether an offset or a padded count of elements goes beyond 31 bits, or may do so in another call."""
        if self.program.sizes:
            return True
        indices = [s.index for s in self.program.statements if s.index is not None]
        most = max((abs(known(bound)) for index in indices for bound in index.bounds), default=0)
        padded = [known(axis.blocks) * axis.block for axis in self.axes]
        everything = prod(known(axis.blocks) * axis.block for axis in self.axes if axis.name != "r")
        return max(most, *padded, known(self.grid), everything) >= 2**31


def plan_tile(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for `group` on `device`."""
    simple = simplify_loops(group)
    if not simple.space.r:
        return _plan_pointwise(simple, storage, device)
    return _plan_reduction(simple, storage, device)


def plan_part(part: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    """The plan for one of several groups in a launch, which has no scratch memory to share its rows by."""
    plan = plan_tile(part, storage, device)
    return plan if plan.kind != "split" else replace(plan, kind="looped", splits=1, chunk=0)


def next_power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


@dataclass(frozen=True)
class _Access:
    index: Index
    bytes: int
    itemsize: int


def _accesses(program: Program) -> list[_Access]:
    """Every load and store with the bytes that it touches: its distinct elements, by the loops that it depends on."""
    found: dict[tuple[str, Index], _Access] = {}
    for statement in program.statements:
        if statement.op in ("load", "store") and statement.index is not None and statement.buffer is not None:
            itemsize = program.storage[statement.buffer].itemsize
            touched = prod(hint(dim.size) for dim in statement.index.dims)
            found[statement.buffer, statement.index] = _Access(statement.index, touched * itemsize, itemsize)
    return list(found.values())


def _unit_bytes(accesses: list[_Access], dims: tuple[Dim, ...]) -> dict[Dim, int]:
    """For each loop the bytes of the accesses that walk memory element by element along it."""
    return {dim: sum(a.bytes for a in accesses if a.index.stride(dim) in (1, -1)) for dim in dims}


def _with_last(dims: tuple[Dim, ...], last: Dim) -> tuple[Dim, ...]:
    return (*(dim for dim in dims if dim != last), last)


def _fastest(dims: tuple[Dim, ...], unit: dict[Dim, int]) -> Dim:
    """The loop along which most bytes are contiguous; the last one among equals."""
    return max(reversed(dims), key=lambda dim: unit[dim])


# Pointwise --------------------------------------------------------------------------------------------------------


def _plan_pointwise(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    program = build_program(group, storage)
    accesses = _accesses(program)
    dims = group.space.x
    if not dims:
        return Plan("pointwise", program, (Axis("x", (), 1, is_scalar=True),), 1)
    unit = _unit_bytes(accesses, dims)
    inner = _fastest(dims, unit)
    dims = _with_last(dims, inner)
    other = _transposed_dim(accesses, dims)
    if other is not None:
        return _plan_transposed(program, dims, other, accesses, device)
    program = replace(program, space=Space(dims))
    block, warps = _pointwise_block(prod(hint(dim.size) for dim in dims), accesses, device)
    return Plan("pointwise", program, (Axis("x", dims, block, is_scalar=block == 1),), warps)


def _transposed_dim(accesses: list[_Access], dims: tuple[Dim, ...]) -> Dim | None:
    """The loop that must be a tile axis of its own: contiguous in accesses that the last loop strides through."""
    inner = dims[-1]
    if hint(inner.size) < 4:
        return None
    strided = [a for a in accesses if a.index.stride(inner) not in (0, 1, -1)]
    unit = _unit_bytes(strided, dims[:-1])
    best = max(unit, key=lambda dim: unit[dim], default=None)
    return best if best is not None and unit[best] and hint(best.size) >= 4 else None


def _plan_transposed(
    program: Program, dims: tuple[Dim, ...], other: Dim, accesses: list[_Access], device: Device
) -> Plan:
    """Tiles of up to 64 x 64, so that a row of the tile is whole sectors of memory in both directions."""
    y_dims = _with_last(dims[:-1], other)
    x_size, y_size = hint(dims[-1].size), prod(hint(dim.size) for dim in y_dims)
    side = 64 if len(accesses) <= 4 else 32
    if (x_size // side) * (y_size // side) < device.multiprocessors * 2:
        side = 32
    x_block, y_block = min(side, next_power_of_two(x_size)), min(side, next_power_of_two(y_size))
    if hint(other.size) < side:
        y_block = min(y_block, max(next_power_of_two(hint(other.size)), 4))
    axes = (Axis("y", y_dims, y_block), Axis("x", dims[-1:], x_block))
    warps = _warps(x_block * y_block, 16 if side == 64 else 8)
    return Plan("pointwise", replace(program, space=Space((*y_dims, dims[-1]))), axes, warps)


def _pointwise_block(numel: int, accesses: list[_Access], device: Device) -> tuple[int, int]:
    """Elements of a program and its warps: each thread moves 32 bytes of the narrowest tensor if that leaves enough
    registers, and no more programs wait than keep all multiprocessors busy."""
    itemsize = min((a.itemsize for a in accesses), default=4)
    per_thread = max(_BYTES_PER_THREAD // itemsize, 4)
    per_thread = min(per_thread, 16, max(16 // itemsize, 64 // max(len(accesses), 1), 2))
    per_thread = 1 << (per_thread.bit_length() - 1)
    warps = 4
    while warps > 1 and numel < per_thread * warps * 32 * device.multiprocessors:
        warps //= 2
    block = per_thread * warps * 32
    while block > 64 and numel < block * device.multiprocessors:
        block //= 2
    block = min(block, next_power_of_two(max(numel, 1)))
    return block, max(1, min(warps, block // 32))


def _warps(elements: int, per_thread: int, most: int = 32) -> int:
    return max(1, min(most, next_power_of_two(elements // (32 * per_thread))))


# Reductions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Walk:
    """How a reduction walks memory: bytes contiguous along r, along x, and the size of the narrowest element."""

    along_r: int
    along_x: int
    itemsize: int

    @property
    def is_outer(self) -> bool:
        """Whether neighbours in memory are different points of x."""
        return self.along_x > self.along_r

    @property
    def is_mixed(self) -> bool:
        return min(self.along_x, self.along_r) * 8 > max(self.along_x, self.along_r)


def _plan_reduction(group: Group, storage: dict[str, torch.dtype], device: Device) -> Plan:
    persistent = build_program(group, storage, is_persistent=True)
    looped = build_program(group, storage)
    passes = len(_r_sections(looped))
    rewrite = in_single_pass(group.single_pass, group.space.reduction_numel) if group.single_pass else None
    if rewrite is not None:
        looped = build_program(group, storage, rewrite=rewrite)
    accesses = [a for a in _accesses(looped) if not a.index.dims.isdisjoint(group.space.r)]
    x_unit, r_unit = _unit_bytes(accesses, group.space.x), _unit_bytes(accesses, group.space.r)
    x_dims = _with_last(group.space.x, _fastest(group.space.x, x_unit)) if group.space.x else ()
    # A scan is one in the order of its loops.
    r_dims = group.space.r if group.has_scan else _with_last(group.space.r, _fastest(group.space.r, r_unit))
    space = Space(x_dims, r_dims)
    persistent, looped = replace(persistent, space=space), replace(looped, space=space)
    walk = _Walk(
        r_unit[r_dims[-1]], x_unit[x_dims[-1]] if x_dims else 0, min((a.itemsize for a in accesses), default=4)
    )
    if may_be_in_teams(group) and not walk.is_mixed and len(_r_sections(looped)) > 1:
        loads = [{s.number for s in section.statements if s.op == "load"} for section in _r_sections(looped)]
        again = sum(sum(number in of_pass for of_pass in loads) > 1 for number in set[int]().union(*loads))
        held = build_program(group, storage, is_persistent=True, rewrite=rewrite)
        team = _plan_team(replace(held, space=space), walk, again, device)
        if team is not None:
            return team
    if group.across:
        return _plan_across(persistent, looped, walk, _fits_registers(persistent, walk, passes, device), device)
    if _fits_registers(persistent, walk, passes, device):
        return _plan_persistent(persistent, walk, device)
    # Not in several passes: the last program alone knows the result of the first.
    is_shared = len(_r_sections(looped)) == 1 and not group.has_scan
    plan = _plan_looped(looped, walk, is_shared, device)
    return _split(plan, device) if is_shared else plan


def _r_sections(program: Program) -> list[Section]:
    return [section for section in program.sections if section.level == "r"]


def _plan_team(program: Program, walk: _Walk, held: int, device: Device) -> Plan | None:
    """A team of programs for each row, if its parts fit into registers and nothing is stored for a row as a whole
    before its first reduction: that might overwrite what another program of the team still has to read."""
    first = next(place for place, section in enumerate(program.sections) if section.level == "r")
    early = [s for section in program.sections[: first + 1] for s in section.statements if s.op == "store"]
    rows, length = hint(program.space.numel), known(program.space.reduction_numel)
    team = team_for(rows, length, held, walk.itemsize, walk.is_outer, device)
    if team is None or any(s.level == "x" for s in early):
        return None
    x_axis = Axis("x", program.space.x, team.x_block, is_scalar=team.x_block == 1)
    axes = (x_axis, Axis("r", program.space.r, team.r_block))
    return Plan("team", program, axes, team.warps, splits=team.size, chunk=team.r_block)


def _live_registers(program: Program) -> int:
    """32-bit registers for each element of r: values that a later pass still needs, and those of the pass itself."""
    made: dict[int, int] = {}
    last_use: dict[int, int] = {}
    words: dict[int, int] = {}
    for place, section in enumerate(program.sections):
        for statement in section.statements:
            if statement.level == "r" and statement.op not in ("store", "constant"):
                made[statement.number] = place
                words[statement.number] = max(statement.dtype.itemsize // 4, 1)
            for number in statement.needs:
                last_use[number] = place
    crossing = [
        sum(words[number] for number in made if made[number] <= place < last_use.get(number, -1))
        for place in range(len(program.sections))
    ]
    widest = max(words.values(), default=1)
    return max(crossing, default=0) + 2 * widest


def _fits_registers(program: Program, walk: _Walk, passes: int, device: Device) -> bool:
    """Whether all of r may be held in registers. For one pass nothing is gained beyond a block's worth of r."""
    size = program.space.reduction_numel
    if not isinstance(size, int):
        return False  # a later call may have more
    if walk.is_outer and not walk.is_mixed:
        return size <= 32 or (size <= 128 and passes > 1)
    if passes == 1 and size > 4096:
        return False
    padded = next_power_of_two(size)
    # Where x is contiguous in memory too, a block of it is held at once, so that both directions coalesce.
    points = min(_COALESCED_POINTS, next_power_of_two(max(hint(program.space.numel), 1))) if walk.is_mixed else 1
    held = padded * _live_registers(program) * points
    budget = device.registers_per_multiprocessor * 3 // 4 if device.registers_per_multiprocessor else 49152
    return padded <= _LONGEST_PERSISTENT and held <= budget


def _elements_per_thread(r_block: int, itemsize: int) -> int:
    """Of a row in registers: two vectors of 16 bytes, which one thread has in flight together. On an H200, layer norm
    of rows of 4,096 bfloat16 takes 72 us with 16 elements in each thread, 84 us with 8."""
    return min(16, max(_BYTES_PER_THREAD // itemsize, 16 if r_block >= 8192 else 8))


def _plan_persistent(program: Program, walk: _Walk, device: Device) -> Plan:
    rows, size = hint(program.space.numel), known(program.space.reduction_numel)
    r_block = next_power_of_two(size)
    elements = 2048 if walk.itemsize <= 2 else 1024
    x_block = max(1, elements // r_block)
    if walk.is_outer or walk.is_mixed:
        x_block = max(x_block, _COALESCED_POINTS)
    while x_block > 1 and rows < x_block * device.multiprocessors and not walk.is_outer:
        x_block //= 2
    x_block = min(x_block, next_power_of_two(max(rows, 1)))
    per_thread = _elements_per_thread(r_block, walk.itemsize)
    warps = _warps(x_block * r_block, per_thread, most=device.threads_per_block // 32 or 32)
    needed = _live_registers(program) * (x_block * r_block // (warps * 32)) + _REGISTERS_FOR_ADDRESSES
    while warps > 4 and needed > device.registers_per_multiprocessor // (warps * 32):
        # Too many threads for the registers: fewer threads may have more each, up to 255.
        warps //= 2
        needed = 2 * (needed - _REGISTERS_FOR_ADDRESSES) + _REGISTERS_FOR_ADDRESSES
    axes = (Axis("x", program.space.x, x_block, is_scalar=x_block == 1), Axis("r", program.space.r, r_block))
    return Plan("persistent", program, axes, warps)


def _plan_looped(program: Program, walk: _Walk, is_shared: bool, device: Device) -> Plan:
    """`is_shared` says that several programs may share a row where rows alone do not fill the device."""
    rows, size = hint(program.space.numel), _expected_length(program.space.reduction_numel)
    accumulators = sum(len(section.reductions) for section in program.sections)
    if walk.is_outer:
        x_block = min(64 if walk.itemsize >= 4 else 128, next_power_of_two(max(rows, 1)))
        while not is_shared and x_block > _SECTOR // walk.itemsize and rows < x_block * device.multiprocessors:
            x_block //= 2
        r_block = min(2048 // x_block, next_power_of_two(size))
        if walk.is_mixed:
            x_block, r_block = min(32, x_block), min(64, next_power_of_two(size))
    else:
        x_block = 1 if size >= 1024 or rows < device.multiprocessors else min(4, next_power_of_two(rows))
        r_block = min(2048 if accumulators > 2 or walk.itemsize > 4 else 4096, next_power_of_two(size))
    axes = (Axis("x", program.space.x, x_block, is_scalar=x_block == 1), Axis("r", program.space.r, r_block))
    per_thread = 16 if walk.is_outer and is_shared else 8
    # Where small programs are enough to fill the device, they hide more latency, each with more loads in flight.
    small = _warps(x_block * r_block, 32, most=16)
    programs = -(-rows // x_block) * (-(-size // r_block) // 2) if is_shared and not walk.is_outer else 0
    if programs * small * 32 >= device.multiprocessors * max(device.threads_per_multiprocessor, 1):
        per_thread = 32
    return Plan("looped", program, axes, _warps(x_block * r_block, per_thread, most=16))


#: Elements of a row from which on its sums are a burden to those who join them.
_LONG_ROW = 4096
#: Rows of parts that one program joins without help.
_MOST_PARTS = 32
#: Rows that a program takes at the least, where its sums for each r are written: they must be few beside the rows.
_ROWS_OF_A_PART = 16


def _plan_across(persistent: Program, looped: Program, walk: _Walk, fits: bool, device: Device) -> Plan:
    """A plan whose programs take several blocks of rows. Sums for each r stay in registers, so there r must too."""
    sums_of_rows = any(s.level == "r" for s in persistent.across)
    is_held = fits or sums_of_rows
    plan = _plan_persistent(persistent, walk, device) if is_held else _plan_looped(looped, walk, True, device)
    if sums_of_rows:
        plan = _in_large_programs(plan, device)
    x_axis = plan.axes[0]
    rows, blocks = known(x_axis.numel), known(x_axis.blocks)
    resident = device.multiprocessors * max(1, device.threads_per_multiprocessor // (32 * plan.num_warps))
    programs = min(blocks, resident)
    if sums_of_rows:
        programs = max(min(programs, rows // _ROWS_OF_A_PART), min(blocks, device.multiprocessors))
    chunk = max(-(-blocks // max(programs, 1)), 1) * x_axis.block
    parts = -(-rows // chunk)
    team_size = next_power_of_two(isqrt(parts)) if sums_of_rows and parts > _MOST_PARTS else 0
    return replace(plan, parts=parts, chunk=chunk, team_size=team_size)


def _in_large_programs(plan: Plan, device: Device) -> Plan:
    """Long rows in as large programs as there are: each writes a row of sums, and somebody has to read them all. On an
    H200 the sums of 8,192 x 8,192 along both axes take 90 us by programs of 1,024 threads and two rows at once, 112 by
    programs of 512 threads and one row."""
    x_axis, r_axis = plan.axes
    threads = device.threads_per_block or 1024
    if r_axis.block < _LONG_ROW:
        return plan
    x_block = max(x_axis.block, min(16 * threads // r_axis.block, next_power_of_two(known(x_axis.numel))))
    x_axis = replace(x_axis, block=x_block, is_scalar=x_block == 1)
    return replace(plan, axes=(x_axis, r_axis), num_warps=threads // 32)


def _expected_length(size: Integer) -> int:
    """For the choice of a block: a length that differs from call to call may be small in the first."""
    return size if isinstance(size, int) else max(hint(size), 1024)


def _split(plan: Plan, device: Device) -> Plan:
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
    wanted = warps // plan.num_warps
    splits = min(-(-wanted // programs), r_blocks // 2, 1024)
    if not isinstance(r_axis.numel, int):
        return replace(plan, kind="split", splits=splits) if splits > 1 else plan
    chunk = -(-r_blocks // splits) * r_axis.block
    splits = -(-r_axis.numel // chunk)
    return replace(plan, kind="split", splits=splits, chunk=chunk) if splits > 1 else plan
