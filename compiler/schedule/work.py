"""What a kernel asks of a device, before any rate is known: bytes by how they are walked, operations by unit.

Nothing here is a time; `cost.py` makes times of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from compiler.ir.body import Access, Instruction
from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.nodes import Layout
from compiler.ir.ops import NAMED, POINTWISE, OpInfo
from compiler.ir.size import hint
from compiler.schedule.group import Batch, Group, Member, Space

#: How neighbouring lanes of a kernel walk a buffer: element by element; along another loop than the lanes, or with
#: gaps; at places that are loaded; or all at one element, which is then used many times.
Walk = Literal["contiguous", "strided", "gathered", "broadcast"]

#: What computes: the float32 lanes, the special function unit with what prepares for it, a division or remainder of
#: integers, the float64 lanes, random numbers.
Unit = Literal["simple", "special", "division", "double", "random"]

_DIVISIONS = frozenset("floordiv truncdiv remainder fmod".split())
_NOT_COUNTED = frozenset(("load", "store", "constant", "index_value", "indirect"))
#: Operations of one random number (Philox of ten rounds).
_RANDOM = 12


@dataclass(frozen=True)
class Work:
    """`bytes` are distinct ones, each read once and each written once; what is updated counts as both. `operations` are
    weighted as `OpInfo.cost` says. `updates` are single atomic operations on memory."""

    bytes: Mapping[Walk, int]
    operations: Mapping[Unit, int]
    updates: int


def touched_bytes(access: Access, space: Space, layout: Layout) -> int:
    """Distinct bytes that one access touches in a whole run of the space."""
    if access.index.indirections:
        elements = hint(space.numel) * hint(space.reduction_numel)
    else:
        elements = access.index.points
    return min(elements * layout.dtype.itemsize, layout.bytes)


def memory_accesses(group: Group) -> Iterator[tuple[Access, Space]]:
    """The loads and stores of the group that reach memory, each with the loops that it happens in."""
    for member in group.members:
        space = group.space if not group.space.r or runs_inside(member, group.space) else Space(group.space.x)
        yield from ((access, space) for access in member.body.reads if access.buffer not in group.produced)
        yield from ((access, space) for access in member.body.writes if access.buffer in group.stored)


def lane_dim(group: Group, layouts: Mapping[str, Layout]) -> Dim | None:
    """The loop that neighbouring lanes follow: the one along which most bytes are contiguous, the last of equals."""
    contiguous: defaultdict[Dim, int] = defaultdict(int)
    for access, space in memory_accesses(group):
        size = touched_bytes(access, space, layouts[access.buffer])
        for dim in access.index.dims:
            if access.index.stride(dim) in (1, -1):
                contiguous[dim] += size
    dims = (*group.space.x, *group.space.r)
    return max(reversed(dims), key=lambda dim: contiguous[dim], default=None)


def walk_of(index: Index, lane: Dim | None) -> Walk:
    """How lanes along `lane` walk an index."""
    if index.indirections:
        return "gathered"
    if lane is None or index.stride(lane) == 0:
        return "broadcast"
    return "contiguous" if index.stride(lane) in (1, -1) else "strided"


def work_of(group: Group, layouts: Mapping[str, Layout]) -> Work:
    """What the kernel of `group` asks for; of a batch, what all its parts do."""
    if isinstance(group, Batch):
        return _sum_of([work_of(part, layouts) for part in group.parts])
    lane = lane_dim(group, layouts)
    by_buffer: dict[str, tuple[Walk, int]] = {}
    updates = 0
    for access, space in memory_accesses(group):
        size = touched_bytes(access, space, layouts[access.buffer]) * (2 if access.is_update else 1)
        updates += hint(group.space.numel) * hint(group.space.reduction_numel) if access.is_update else 0
        if size > by_buffer.get(access.buffer, ("contiguous", 0))[1]:
            by_buffer[access.buffer] = walk_of(access.index, lane), size
    moved: defaultdict[Walk, int] = defaultdict(int)
    for walk, size in by_buffer.values():
        moved[walk] += size
    done: defaultdict[Unit, int] = defaultdict(int)
    for member in group.members:
        points = iterations(member, group.space)
        for unit, count in unit_operations(member).items():
            done[unit] += count * points
    return Work(dict(moved), dict(done), updates)


def _sum_of(works: list[Work]) -> Work:
    moved: Counter[Walk] = Counter()
    done: Counter[Unit] = Counter()
    for work in works:
        moved.update(work.bytes)
        done.update(work.operations)
    return Work(dict(moved), dict(done), sum(work.updates for work in works))


def iterations(member: Member, space: Space) -> int:
    """How often the body of a member runs: at every point of all loops, or of the independent ones alone."""
    points = hint(space.numel)
    return points * hint(space.reduction_numel) if runs_inside(member, space) else points


def runs_inside(member: Member, space: Space) -> bool:
    """Whether the body of a member runs at every point of the reduction loops."""
    r_dims = frozenset(space.r)
    accesses = (*member.body.reads, *member.body.writes)
    return member.body.is_collective or any(not access.index.dims.isdisjoint(r_dims) for access in accesses)


def unit_operations(member: Member) -> dict[Unit, int]:
    """Weighted operations of one iteration of the body, by unit; those of addresses among the divisions."""
    found: defaultdict[Unit, int] = defaultdict(int)
    for instruction in member.body.instructions:
        if instruction.op not in _NOT_COUNTED:
            unit, weight = _unit_of(instruction)
            found[unit] += weight
        if instruction.index is not None:
            found["division"] += 8 * _divisions(instruction.index)
    return {unit: count for unit, count in found.items() if count}


def _unit_of(instruction: Instruction) -> tuple[Unit, int]:
    if instruction.op in ("rand", "randn"):
        return "random", _RANDOM
    weight = (POINTWISE.get(instruction.op) or NAMED.get(instruction.op) or OpInfo(instruction.op, 1)).cost
    if instruction.dtype == torch.float64:
        return "double", weight
    if instruction.op in _DIVISIONS:
        return "division", weight
    return ("special" if weight > 1 else "simple"), weight


def _divisions(index: Index) -> int:
    return sum(1 + _divisions(atom.numerator) for atom, _ in index.terms if isinstance(atom, FloorDiv | Mod))
