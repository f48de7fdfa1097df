"""What the device model expects of a kernel: bytes, operations, microseconds. All figures here are predictions.

    time = launch + latency + max(bytes / reachable bandwidth, operations / rate)

Bytes count each distinct element of a buffer once, weighted by how its accesses coalesce: a warp that reads with a
stride moves whole 32-byte sectors for single elements, unless the tile is two-dimensional and the sectors are used up.
Sizes that differ from call to call count as what they were in the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.devices import Device
from compiler.ir.body import Access
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import ExternNode, Layout
from compiler.ir.size import hint
from compiler.schedule.group import Batch, Group, parts_of
from compiler.schedule.work import memory_accesses, runs_inside, touched_bytes, work_of

#: How many times the useful bytes an access moves that does not follow the lanes: a 32-byte sector for 8 float32,
#: of which the neighbouring rows of the tile, still in the cache, use about a half.
UNCOALESCED = 4


#: How much of the memory's bandwidth one multiprocessor can take, in shares of an even distribution.
SHARE_OF_ONE_MULTIPROCESSOR = 2.5
#: Neighbouring points of x that one program of a reduction takes where x is contiguous in memory.
COLUMNS_OF_A_PROGRAM = 32


@dataclass(frozen=True)
class Cost:
    """What one kernel is expected to move, compute and take."""

    bytes: int
    operations: int
    microseconds: float


def buffer_bytes(group: Group, layouts: dict[str, Layout]) -> dict[str, int]:
    """Bytes that the kernel moves, by buffer: each element read once and written once; what is updated, both.

    Accesses of one buffer at different places (two halves of it) add up, until all of it is touched. The parts of a
    batch run side by side, so each reads for itself."""
    found: dict[str, int] = {}
    if isinstance(group, Batch):
        for part in group.parts:
            for buffer, count in buffer_bytes(part, layouts).items():
                found[buffer] = found.get(buffer, 0) + count
        return found
    touched: dict[str, dict[Index, int]] = {}
    for access, space in memory_accesses(group):
        size = touched_bytes(access, space, layouts[access.buffer])
        if access.buffer in group.stored:
            found[access.buffer] = 2 * size if access.is_update else size
        else:
            by_index = touched.setdefault(access.buffer, {})
            by_index[access.index] = max(size, by_index.get(access.index, 0))
    for buffer, sizes in touched.items():
        found[buffer] = min(sum(sizes.values()), layouts[buffer].bytes)
    return found


def fast_dims(access: Access) -> frozenset[Dim]:
    """The loop variables along which neighbouring iterations touch neighbouring elements."""
    return access.index.contiguous_dims


def _weighted_bytes(group: Group, layouts: dict[str, Layout]) -> float:
    """Bytes with those of accesses that do not coalesce counted several times."""
    return sum(buffer_bytes(group, layouts).values()) + (UNCOALESCED - 1) * _slow_bytes(group, layouts)


def _slow_bytes(group: Group, layouts: dict[str, Layout]) -> int:
    """Bytes of the accesses that do not coalesce: the tile follows the larger share, and the smaller one pays."""
    return min(_bytes_along(group, layouts)) if group.space.r else 0


def _bytes_along(group: Group, layouts: dict[str, Layout]) -> tuple[int, int]:
    """Bytes of the accesses inside the reduction that are contiguous along r, and of those that are so along x."""
    r_dims = frozenset(group.space.r)
    along: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for member in group.members:
        for access in (*member.body.reads, *member.body.writes):
            is_register = access.buffer in group.produced and access.buffer not in group.stored
            if is_register or access.index.indirections or access.index.dims.isdisjoint(r_dims):
                continue
            fast = fast_dims(access)
            # A loop that is divided jumps about (the transpose of what runs along with it).
            if not fast and all(access.index.stride(dim) is not None for dim in access.index.dims):
                continue
            size = touched_bytes(access, group.space, layouts[access.buffer])
            along[not fast.isdisjoint(r_dims)][access.buffer] = size
    return sum(along[True].values()), sum(along[False].values())


def reachable_bandwidth(group: Group, layouts: dict[str, Layout], device: Device) -> float:
    """Bytes per second that a group can move: all of the memory's, unless it is a reduction with so few rows that they
    do not occupy the device, and that no two programs can share a row of."""
    if not group.space.r or _may_share_rows(group):
        return device.bandwidth
    programs = hint(group.space.numel)
    along_r, along_x = _bytes_along(group, layouts)
    if along_x > along_r:
        programs = -(-programs // COLUMNS_OF_A_PROGRAM)
    return device.bandwidth * min(1.0, SHARE_OF_ONE_MULTIPROCESSOR * programs / max(device.multiprocessors, 1))


def _may_share_rows(group: Group) -> bool:
    """Whether several programs may each reduce a part of a row: not where a row is gone through more than once."""
    reduced: set[str] = set()
    for member in group.members:
        depends = any(access.buffer in reduced for access in member.body.reads)
        if member.is_across or member.body.scan is not None or (depends and runs_inside(member, group.space)):
            return False
        if member.body.reduction is not None or depends:
            reduced.add(member.name)
    return True


def operations(group: Group) -> int:
    points = hint(group.space.numel)
    if not group.space.r:
        return points * sum(member.body.operations for member in group.members)
    everything = points * hint(group.space.reduction_numel)
    r_dims = frozenset(group.space.r)
    total = 0
    for member in group.members:
        accesses = (*member.body.reads, *member.body.writes)
        runs_inside = member.body.is_collective or any(not a.index.dims.isdisjoint(r_dims) for a in accesses)
        total += member.body.operations * (everything if runs_inside else points)
    return total


def group_cost(group: Group, layouts: dict[str, Layout], device: Device) -> Cost:
    """The expected cost of running `group` as one kernel on `device`; the parts of a batch one after the other."""
    moved = worked = 0
    seconds = 0.0
    for part in parts_of(group):
        bytes_of_part, work_of_part = sum(buffer_bytes(part, layouts).values()), operations(part)
        weighted = bytes_of_part + (UNCOALESCED - 1) * _slow_bytes(part, layouts)
        seconds += max(weighted / reachable_bandwidth(part, layouts, device), work_of_part / device.flops)
        moved, worked = moved + bytes_of_part, worked + work_of_part
    return Cost(moved, worked, device.launch_us + device.latency_us + 1e6 * seconds)


def cost_parts(group: Group, layouts: dict[str, Layout], device: Device) -> dict[str, Any]:
    """What the prediction of `group_cost` is made of, as plain JSON: microseconds, bytes by how they are walked, and
    operations by the unit that does them."""
    work = work_of(group, layouts)
    return {
        "launch_us": device.launch_us,
        "latency_us": device.latency_us,
        "memory_us": 1e6
        * sum(_weighted_bytes(part, layouts) / reachable_bandwidth(part, layouts, device) for part in parts_of(group)),
        "arithmetic_us": 1e6 * sum(operations(part) for part in parts_of(group)) / device.flops,
        "bytes": dict(work.bytes),
        "operations": dict(work.operations),
        "updates": work.updates,
    }


def extern_bytes(node: ExternNode, layouts: dict[str, Layout]) -> int:
    """Bytes of a library call's tensors: each argument read once, each result written once."""
    read = {argument.buffer: argument.layout.bytes for argument in node.tensor_arguments}
    return sum(read.values()) + sum(layouts[name].bytes for name in node.write_buffers)
