"""What the device model expects of a kernel: bytes, operations, microseconds. All figures here are predictions.

    time = launch + latency + max(bytes / bandwidth, operations / rate)

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
from compiler.schedule.group import Group
from compiler.schedule.work import touched_bytes, work_of

#: How many times the useful bytes an access moves that does not follow the lanes: a 32-byte sector for 8 float32,
#: of which the neighbouring rows of the tile, still in the cache, use about a half.
UNCOALESCED = 4


@dataclass(frozen=True)
class Cost:
    """What one kernel is expected to move, compute and take."""

    bytes: int
    operations: int
    microseconds: float


def buffer_bytes(group: Group, layouts: dict[str, Layout]) -> dict[str, int]:
    """Bytes that the kernel moves, by buffer: each element read once and written once; what is updated, both.

    Accesses of one buffer at different places (two halves of it) add up, until all of it is touched."""
    found: dict[str, int] = {}
    for buffer, reads in _distinct_reads(group).items():
        touched = [touched_bytes(access, group.space, layouts[buffer]) for access in reads]
        found[buffer] = max(max(touched), min(sum(touched), layouts[buffer].bytes))
    for member in group.members:
        for access in member.body.writes:
            if access.buffer in group.stored:
                touched_once = touched_bytes(access, group.space, layouts[access.buffer])
                found[access.buffer] = 2 * touched_once if access.is_update else touched_once
    return found


def _distinct_reads(group: Group) -> dict[str, list[Access]]:
    """What is read of memory, by buffer, one access for each index."""
    found: dict[str, dict[Index, Access]] = {}
    for member in group.members:
        for access in member.body.reads:
            if access.buffer not in group.produced:
                found.setdefault(access.buffer, {}).setdefault(access.index, access)
    return {buffer: list(reads.values()) for buffer, reads in found.items()}


def fast_dims(access: Access) -> frozenset[Dim]:
    """The loop variables along which neighbouring iterations touch neighbouring elements."""
    return access.index.contiguous_dims


def _weighted_bytes(group: Group, layouts: dict[str, Layout]) -> float:
    """Bytes with those of accesses that do not coalesce counted several times."""
    return sum(buffer_bytes(group, layouts).values()) + (UNCOALESCED - 1) * _slow_bytes(group, layouts)


def _slow_bytes(group: Group, layouts: dict[str, Layout]) -> int:
    """Bytes of the accesses that do not coalesce."""
    if not group.space.r:
        return 0
    r_dims = frozenset(group.space.r)
    along: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for member in group.members:
        for access in (*member.body.reads, *member.body.writes):
            is_register = access.buffer in group.produced and access.buffer not in group.stored
            if is_register or access.index.dims.isdisjoint(r_dims):
                continue
            fast = fast_dims(access)
            if not fast:
                continue
            size = touched_bytes(access, group.space, layouts[access.buffer])
            along[not fast.isdisjoint(r_dims)][access.buffer] = size
    # The tile follows the larger share; the smaller one pays.
    return min((sum(sizes.values()) for sizes in along.values()), default=0)


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
    """The expected cost of running `group` as one kernel on `device`."""
    work, moved = operations(group), sum(buffer_bytes(group, layouts).values())
    weighted = moved + (UNCOALESCED - 1) * _slow_bytes(group, layouts)
    seconds = max(weighted / device.bandwidth, work / device.flops)
    return Cost(moved, work, device.launch_us + device.latency_us + 1e6 * seconds)


def cost_parts(group: Group, layouts: dict[str, Layout], device: Device) -> dict[str, Any]:
    """What the prediction of `group_cost` is made of, as plain JSON: microseconds, bytes by how they are walked, and
    operations by the unit that does them."""
    work = work_of(group, layouts)
    return {
        "launch_us": device.launch_us,
        "latency_us": device.latency_us,
        "memory_us": 1e6 * _weighted_bytes(group, layouts) / device.bandwidth,
        "arithmetic_us": 1e6 * operations(group) / device.flops,
        "bytes": dict(work.bytes),
        "operations": dict(work.operations),
        "updates": work.updates,
    }


def extern_bytes(node: ExternNode, layouts: dict[str, Layout]) -> int:
    """Bytes of a library call's tensors: each argument read once, each result written once."""
    read = {argument.buffer: argument.layout.bytes for argument in node.tensor_arguments}
    return sum(read.values()) + sum(layouts[name].bytes for name in node.write_buffers)
