"""Number seeds within their kernel instead of within the graph, so that equal kernels stay equal.

    rand(seeds[4], i), rand(seeds[5], i)    ->    rand(seeds[0], i), rand(seeds[1], i), launched with seeds[4:]

Equal layers draw from seeds of their own, and so would each have kernels of its own, which are compiled and checked one
by one. Of a transformer of 24 layers with dropout 77 kernels were of different code, where nine are.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.body import Body, moved
from compiler.lowering.loop_builder import SEEDS
from compiler.schedule.group import Batch, Group, Member, parts_of

#: First seeds are multiples of this: what a launch passes is taken for a tensor that begins at 16 bytes.
_ALIGNED = 2


def first_seed(group: Group) -> int:
    """The position from which on the group's kernel is given seeds; 0 where it draws nothing."""
    positions = [
        access.index.offset if not access.index.terms else 0
        for part in parts_of(group)
        for member in part.members
        for access in member.body.reads
        if access.buffer == SEEDS
    ]
    first = min((position for position in positions if isinstance(position, int)), default=0)
    return first - first % _ALIGNED


def counted_from(group: Group, first: int) -> Group:
    """The group, in which seed number `first` is the first one."""
    if not first:
        return group
    if isinstance(group, Batch):
        parts = tuple(counted_from(part, first) for part in group.parts)
        return replace(group, members=_members(group, first), parts=parts)
    return replace(group, members=_members(group, first))


def _members(group: Group, first: int) -> tuple[Member, ...]:
    return tuple(replace(member, body=_body(member.body, first)) for member in group.members)


def _body(body: Body, first: int) -> Body:
    if not any(access.buffer == SEEDS for access in body.reads):
        return body
    return Body(
        tuple(
            moved(i, i.operands, i.index - first, i.node) if i.buffer == SEEDS and i.index is not None else i
            for i in body.instructions
        )
    )
