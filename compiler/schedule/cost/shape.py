"""How a group will run, as far as its cost depends on it: programs, threads, passes over the reduction loops.

A group whose programs know nothing of each other runs by its tile (`schedule/tiles/`). Of other reductions this
foresees what `codegen/triton/tile_reduction.py` decides, from the group alone and without building the kernel: a
scheduler asks for the cost of every fusion that it weighs.

    softmax of 512 rows of 131,072   ->   512 programs of 512 threads; 3 passes, each of which reads x
    the same of 16,384 rows of 4,096 ->   16,384 programs; x stays in registers, so it is read once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch

from compiler.devices import SECTOR, WARP, Device
from compiler.ir.body import Access
from compiler.ir.index import Dim
from compiler.ir.nodes import Layout
from compiler.ir.size import hint
from compiler.schedule.cost.columns import LINE, Columns, Walked, held_columns, most_parts, shares_of, streamed_columns
from compiler.schedule.cost.cooperative import cooperative_reduction
from compiler.schedule.cost.look_back import bytes_of_scans, chunks_of, may_look_back
from compiler.schedule.cost.single_pass import passes_in_blocks
from compiler.schedule.cost.touches import Traffic
from compiler.schedule.group import Group, Member
from compiler.schedule.tiles.plan import LoopTile

#: Rows for each multiprocessor from which on tiles of whole lines both ways, which have 32 of them, keep it busy
#: without sharing rows. On an H200 two cross entropies of 4,096 x 4,096 scores, along both, and their gradient take
#: 125 us by 128 programs of such tiles, 98 in kernels of their own.
ROWS_OF_LINES = 64

#: Rows of columns that are so short are held without further ado, for one pass too.
SHORT = 32

#: Bytes that a thread loads at a time.
VECTOR = 16

#: Weighted operations for an element that are much: a gate's gradients by sigmoid and tanh take 46.
MUCH = 28

#: What a step of a loop waits for, as a multiple of that of a reduction along memory: for a block that is many rows
#: high, and for a scan, which goes through shared memory several times. Measured on the H200.
ACROSS_STEP, SCAN_STEP = 2, 10


#: Of what a C++ kernel keeps between passes, in arrays: the least cost (see `OpInfo.cost`), and the most bytes of a
#: row, half of a small first-level cache and less.
KEPT_COST, KEPT_IN_ARRAYS = 8, 1 << 16


@dataclass(frozen=True)
class Shape:
    """`programs` run independently, `threads` in each; each goes through `steps` blocks of the tile one after another.
    `passes` are the loads of each pass over the reduction loops that finds nothing in registers any more; one where all
    stays in registers, none in a kernel without reductions."""

    programs: int
    threads: int
    steps: int
    passes: tuple[frozenset[Access], ...]
    #: How many times as long as the simplest one a step waits for what it has loaded.
    step_weight: int = 1
    is_split: bool = False
    #: Whether the last program of each row leaves a value for the last one of all.
    joins_rows: bool = False
    #: Blocks of independent points that a program takes one after another.
    blocks: int = 1
    #: The loops along which neighbouring lanes do not lie, though the kernel reduces: memory that is contiguous along
    #: these alone is walked in single sectors. Empty where the tile spans both directions.
    across: frozenset[Dim] = frozenset()
    #: Whether sums of the group's `single_pass` are carried along, which takes some arithmetic for each element.
    carries: bool = False
    #: Steps of a loop whose wait nothing hides: those of programs that are few, and must wait for each other's loads.
    lone_steps: int = 0
    #: How often a multiprocessor's programs wait for others that share their row, one after the other.
    exchanges: int = 0
    #: Whether they do so as clusters.
    in_clusters: bool = False
    #: In how many passes each member is computed, of those that several compute.
    times: Mapping[str, int] = field(default_factory=dict)


def shape_of(
    group: Group, traffic: Traffic, layouts: Mapping[str, Layout], device: Device, tile: LoopTile | None = None
) -> Shape:
    """The shape that `group`, which touches memory by `traffic`, has on `device` by its `tile`, or is expected to
    have."""
    if device.kind == "cpu":
        rows = max(hint(group.space.numel), device.multiprocessors)
        passes = passes_in_blocks(group, layouts) if group.single_pass else passes_over_r(group)
        shape = Shape(rows, WARP, 1, passes if group.space.r else (), carries=bool(group.single_pass))
    elif tile is not None:
        # A lane that goes over a window by itself finds the lines that its loads leave in the nearest cache.
        return Shape(hint(tile.programs), WARP * tile.num_warps, 1, passes_over_r(group) if group.space.r else ())
    else:
        shape = _reduction(group, traffic, layouts, device)
    # Columns go by in blocks. On a CPU these stay in the cache; on an H200 programs that share columns gain less than
    # what they need not compute again: a softmax of 4,096 columns of 8,192 bfloat16 takes 94 us so, 75 by a loop.
    if len(shape.passes) > 1 and group.reduces_along_memory(group.read_buffers):
        times = times_computed(group) if device.kind == "cuda" else times_computed_by_cpu(group, layouts)
        shape = replace(shape, times=times)
    if shape.is_split and group.across:
        return replace(shape, joins_rows=True)
    return _taking_several_blocks(shape, device) if group.across and device.kind != "cpu" else shape


def _taking_several_blocks(shape: Shape, device: Device) -> Shape:
    """Programs that reduce across x as well: as many as the device holds, and the last one joins what they gathered."""
    resident = device.multiprocessors * max(1, device.threads_per_multiprocessor // shape.threads)
    blocks = -(-shape.programs // max(min(shape.programs, resident), 1))
    programs = -(-shape.programs // blocks)
    return replace(shape, programs=programs, blocks=blocks, steps=shape.steps * blocks, is_split=True)


def _power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


def _reduction(group: Group, traffic: Traffic, layouts: Mapping[str, Layout], device: Device) -> Shape:
    rows, size = hint(group.space.numel), hint(group.space.reduction_numel)
    passes = passes_over_r(group)
    reads = frozenset().union(*passes)
    chunks = chunks_of(rows, size, bytes_of_scans(group), device) if may_look_back(group) else None
    if chunks is not None:
        waits = chunks.waits(rows, device)
        return Shape(rows * chunks.count, WARP * chunks.warps, 1, (reads,), exchanges=waits)
    itemsize = min((layouts[a.buffer].dtype.itemsize for a in reads), default=4)
    along_r, along_x = _walked_bytes(group, traffic)
    is_outer, is_mixed = along_x > along_r, min(along_x, along_r) * 8 > max(along_x, along_r)
    across = frozenset() if is_mixed and is_outer else frozenset(group.space.r if is_outer else group.space.x)
    in_blocks = passes_in_blocks(group, layouts) if group.single_pass else passes
    held = sum(sum(access in loads for loads in in_blocks) > 1 for access in reads)
    floats = exchanges_floats(group)
    team = cooperative_reduction(rows, size, held, itemsize, is_outer, device, floats) if may_cooperate(group) else None
    if team is not None and not is_mixed and len(in_blocks) > 1:
        programs = -(-rows // team.x_block) * team.size
        exchanges = (len(in_blocks) - writes_rows(group)) * team.waves(rows, device)
        exchanges *= team.wait_of_columns(itemsize, rows, device) if is_outer else 1
        threads = WARP * team.warps
        return Shape(
            programs, threads, 1, (reads,), across=across, exchanges=exchanges, in_clusters=team.is_cluster
        )  # fmt: skip
    goes_across = is_outer and not is_mixed
    walked = walked_of(group, reads, {a.buffer: layouts[a.buffer].dtype for a in reads})
    columns = columns_of(group, passes, walked, device) if goes_across else None
    if columns is not None:
        return Shape(-(-rows // columns.x_block), WARP * columns.warps, 1, (reads,), across=across)
    is_known = isinstance(group.space.reduction_numel, int)
    if is_known and _stays_in_registers(size, len(passes), len(reads), is_outer, is_mixed, rows):
        padded = _power_of_two(size)
        x_block = max(1, (2048 if itemsize <= 2 else 1024) // padded)
        if is_outer or is_mixed:
            x_block = max(x_block, WARP)
        while x_block > 1 and rows < x_block * device.multiprocessors and not is_outer:
            x_block //= 2
        x_block = min(x_block, _power_of_two(max(rows, 1)))
        threads = WARP * _warps(x_block * padded, 16 if padded >= 8192 or itemsize <= 2 else 8, 32)
        if x_block == 1 and rows <= device.multiprocessors and not (is_outer or is_mixed):
            threads = max(threads, WARP * _warps(padded, VECTOR // itemsize, 16))  # no multiprocessor has a second one
        across = frozenset() if is_mixed else across
        return Shape(-(-rows // x_block), threads, 1, (reads,), across=across)
    passes = in_blocks
    is_shared = len(passes) == 1 and not group.has_scan
    is_filled = (is_shared and not group.across) or rows >= ROWS_OF_LINES * device.multiprocessors
    has_rows = is_outer or (is_mixed and not group.has_scan and is_filled)
    across = frozenset() if is_mixed and has_rows else across
    may_share = is_shared and not sums_of_rows(group)
    if goes_across and not group.has_scan and (may_share or not group.across):
        streamed = _streamed(group, passes, walked, across, device)
        if streamed.is_split or not group.across:
            return streamed
    if has_rows:
        x_block = min(64 if itemsize >= 4 else 128, _power_of_two(rows))
        while not is_shared and x_block > SECTOR // itemsize and rows < x_block * device.multiprocessors:
            x_block //= 2
        r_block = min(2048 // x_block, _power_of_two(size))
        if is_mixed:
            x_block, r_block = min(32, x_block), min(64, _power_of_two(size))
    else:
        x_block = 1 if size >= 1024 or rows < device.multiprocessors else min(4, _power_of_two(rows))
        takes_two = itemsize <= 2 and not is_shared and rows >= device.multiprocessors
        most = 8192 if takes_two else 4096 if itemsize <= 4 else 2048
        r_block = min(most, _power_of_two(size))
    carries = bool(group.single_pass)
    if carries and (is_shared or group.across) and not has_rows:
        r_block = min(r_block, 2048)
    if is_shared and not has_rows and rows < device.multiprocessors and writes_rows(group):
        r_block = min(r_block, 1024)
    small = WARP * _warps(x_block * r_block, 32, 16)
    shares = -(-rows // x_block) * (-(-size // r_block) // 2) if is_shared and not has_rows else 0
    fills = not (carries or writes_rows(group)) and shares * small >= device.multiprocessors * max(
        device.threads_per_multiprocessor, 1
    )
    threads = small if fills else WARP * _warps(x_block * r_block, 16 if has_rows and is_shared else 8, 16)
    programs, steps = -(-rows // x_block), -(-size // r_block) * len(passes)
    # Programs that gather for each r take whole rows.
    splits = _splits(programs, threads, steps, device) if may_share else 1
    weight = SCAN_STEP if group.has_scan else ACROSS_STEP if has_rows else 1
    steps = -(-steps // splits)
    return Shape(programs * splits, threads, steps, passes, weight, splits > 1, across=across, carries=carries)


def _streamed(
    group: Group, passes: tuple[frozenset[Access], ...], walked: Walked, across: frozenset[Dim], device: Device
) -> Shape:
    """Loops over the rows of columns."""
    rows, size, carries = hint(group.space.numel), hint(group.space.reduction_numel), bool(group.single_pass)
    is_shared = len(passes) == 1
    tile = streamed_columns(rows, size, walked, is_shared, is_heavy(group), computes_much(group), device)
    programs, blocks = -(-rows // tile.x_block), -(-size // tile.r_block)
    shares = (
        shares_of(programs, blocks, tile.warps, most_parts(tile, carries), carries, walked.is_stored, device)
        if is_shared
        else 1
    )
    steps = -(-blocks // shares) * len(passes)
    lone = steps if not is_shared and programs <= 2 * device.multiprocessors else 0
    return Shape(
        programs * shares, WARP * tile.warps, steps, passes, ACROSS_STEP, shares > 1, across=across, carries=carries,
        lone_steps=lone,
    )  # fmt: skip


def _splits(programs: int, threads: int, steps: int, device: Device) -> int:
    """How many programs share a row, so that the device is full."""
    most = device.multiprocessors * max(device.threads_per_multiprocessor, 1)
    if programs * threads * 3 > most or steps < 4:
        return 1
    return max(1, min(most // (threads * programs), steps // 2, 1024))


def _warps(elements: int, per_thread: int, most: int) -> int:
    return max(1, min(most, _power_of_two(elements // (WARP * per_thread))))


def _stays_in_registers(size: int, passes: int, reads: int, is_outer: bool, is_mixed: bool, rows: int) -> bool:
    if is_outer and not is_mixed:
        return size <= SHORT or (size <= 128 and passes > 1)
    if passes == 1 and size > 4096:
        return False
    padded = _power_of_two(size)
    points = min(WARP, _power_of_two(max(rows, 1))) if is_mixed else 1
    return padded <= 32768 and padded * (2 + (reads if passes > 1 else 0)) * points <= 49152


def _walked_bytes(group: Group, traffic: Traffic) -> tuple[int, int]:
    """Bytes of the accesses that depend on the reduction loops, contiguous along these, and along the others."""
    along = {True: 0, False: 0}
    for touch in traffic.touches:
        fast = touch.access.fast_dims
        if fast and not touch.access.index.dims.isdisjoint(group.space.r):
            is_along_r = traffic.lane in group.space.r if traffic.lane in fast else not fast.isdisjoint(group.space.r)
            along[is_along_r] += touch.bytes
    return along[True], along[False]


def may_cooperate(group: Group) -> bool:
    """Whether a team of programs may hold a row of the group: nothing of it must happen in order or just once."""
    is_known = all(isinstance(dim.size, int) for dim in (*group.space.x, *group.space.r))
    return group.is_cooperative and is_known and not (group.has_scan or group.across or group.updated)


def walked_of(group: Group, reads: frozenset[Access], dtypes: Mapping[str, torch.dtype]) -> Walked:
    """What a reduction across memory reads, of tensors with these dtypes."""
    loops = frozenset(group.space.x), frozenset(group.space.r)
    along = [a for a in reads if not any(a.index.dims.isdisjoint(dims) for dims in loops)]
    is_off_lines = bool(along) and all(_is_off_lines(a, group, dtypes[a.buffer].itemsize) for a in along)
    # Rows that begin anywhere move one element at a time, and gain nothing: sums of 33,467 columns of an odd tensor
    # take 28 us by 32 columns, 34 by 64.
    is_ragged = is_off_lines and all(_is_off_lines(a, group, dtypes[a.buffer].itemsize, VECTOR) for a in along)
    itemsize = max((dtypes[a.buffer].itemsize for a in along), default=4)
    return Walked(len(along), itemsize, is_ragged, writes_rows(group), is_off_lines)


def _is_off_lines(access: Access, group: Group, itemsize: int, least: int = 1) -> bool:
    """Whether an access goes along rows that are longer than a line of the cache, and begin at multiples of so many
    bytes, but not where lines do."""
    strides = {dim: access.index.stride(dim) for dim in access.index.dims}
    lanes = [dim for dim in group.space.x if strides.get(dim) == 1]
    steps = [stride for dim, stride in strides.items() if dim not in lanes]
    if len(lanes) != 1 or hint(lanes[0].size) * itemsize < LINE:
        return False
    starts = [hint(stride) * itemsize for stride in steps if stride is not None]
    return all(start % least == 0 for start in starts) and any(start % LINE != 0 for start in starts)


def columns_of(group: Group, passes: tuple[frozenset[Access], ...], walked: Walked, device: Device) -> Columns | None:
    """How programs hold the columns of a group that needs several `passes` over them, whose neighbours in memory are
    different points of x; None where they do not, or nothing is gained."""
    length = group.space.reduction_numel
    if len(passes) < 2 or not isinstance(length, int) or length <= SHORT or group.has_scan or sums_of_rows(group):
        return None
    return held_columns(hint(group.space.numel), length, walked, device)


def sums_of_rows(group: Group) -> bool:
    """Whether something is reduced across x for each point of the reduction loops."""
    r_dims = frozenset(group.space.r)
    across = [m for m in group.members if m.is_across and m.body.reduction is not None]
    return any(not access.index.dims.isdisjoint(r_dims) for m in across for access in m.body.writes)


def is_heavy(group: Group) -> bool:
    """Whether several values are carried along for each element that it reduces: a position, or a sum that is relative
    to another result."""
    operations = (i for m in group.members for i in m.body.instructions if i.op == "reduce")
    return bool(group.single_pass) or any(str(i.value).startswith("arg") for i in operations)


def exchanges_floats(group: Group) -> bool:
    """Whether all that is reduced for a row is float32."""
    reductions = [member.body.reduction for member in group.members if member.body.reduction is not None]
    return all(i.dtype == torch.float32 and not str(i.value).startswith("arg") for i in reductions)


def writes_rows(group: Group) -> bool:
    """Whether something is stored for each point of the reduction loops."""
    r_dims = frozenset(group.space.r)
    writes = [a for m in group.members for a in m.body.writes if a.buffer in group.stored]
    return any(not access.index.dims.isdisjoint(r_dims) for access in writes)


def computes_much(group: Group) -> bool:
    """Whether so much is computed for each element that is stored, that the registers it takes keep other programs
    out."""
    r_dims = frozenset(group.space.r)
    work = sum(m.body.operations for m in group.members if not m.body.dims.isdisjoint(r_dims))
    return writes_rows(group) and work >= MUCH


def passes_over_r(group: Group) -> tuple[frozenset[Access], ...]:
    """What each pass of a looped kernel loads: all that its results need and that varies along the reduction loops."""
    r_dims = frozenset(group.space.r)
    return tuple(frozenset(_loads(found, group, r_dims)) for found in members_of_passes(group)) or (frozenset(),)


def times_computed(group: Group) -> dict[str, int]:
    """In how many passes each member is computed, of those that several compute, where nothing of a row is kept."""
    r_dims = frozenset(group.space.r)
    passes = members_of_passes(group, group.single_pass)
    times = Counter(m.name for members in passes for m in members if not m.body.dims.isdisjoint(r_dims))
    return {name: count for name, count in times.items() if count > 1}


def times_computed_by_cpu(group: Group, layouts: Mapping[str, Layout]) -> dict[str, int]:
    """The same of a C++ kernel, which keeps costly values of rows while they fit (`codegen/cpp/kept.py`). What is cheap
    takes no longer in vectors than to load it."""
    times = times_computed(group)
    costly = [m for m in group.members if m.name in times and m.body.operations >= KEPT_COST]
    row = hint(group.space.reduction_numel) * sum(layouts[member.name].dtype.itemsize for member in costly)
    again = [] if row <= KEPT_IN_ARRAYS else costly[:-1] if writes_rows(group) else costly
    return {member.name: times[member.name] for member in again}


def members_of_passes(group: Group, early: frozenset[str] = frozenset()) -> list[list[Member]]:
    """What each pass of a looped kernel computes. Sums of `early` are made in the pass of what they wait for."""
    r_dims = frozenset(group.space.r)
    by_name = {member.name: member for member in group.members}
    ready: dict[str, int] = {}
    roots: dict[int, list[Member]] = {}
    for member in group.members:
        before = max((ready[a.buffer] for a in member.body.reads if a.buffer in ready), default=0)
        before -= member.name in early
        is_reduction = member.body.reduction is not None
        ready[member.name] = before + (is_reduction and not member.is_across)
        writes_r = any(not a.index.dims.isdisjoint(r_dims) for a in member.body.writes if a.buffer in group.stored)
        # What is reduced across x of a result of each row is gathered after the passes.
        is_gathered = member.is_across and member.body.dims.isdisjoint(r_dims)
        if (is_reduction and not is_gathered) or writes_r or member.node.is_scatter:
            roots.setdefault(before, []).append(member)
    passes: list[list[Member]] = []
    for _, open_ in sorted(roots.items()):
        seen = dict[str, Member]()
        while open_:
            member = open_.pop()
            if member.name in seen:
                continue
            seen[member.name] = member
            made = (by_name[access.buffer] for access in member.body.reads if access.buffer in by_name)
            open_ += [other for other in made if other.body.reduction is None]
        passes.append(list(seen.values()))
    return passes


def _loads(members: Iterable[Member], group: Group, r_dims: frozenset[object]) -> Iterator[Access]:
    """What these load that varies along the reduction loops."""
    for access in (access for member in members for access in member.body.reads if access.buffer not in group.produced):
        if access.index.indirections or not access.index.dims.isdisjoint(r_dims):
            yield access
