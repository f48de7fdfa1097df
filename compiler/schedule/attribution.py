"""Which kernel a node is counted to that is on the way to a part of a concatenation.

    for x: c[x] = sin(a[x])             sin is counted to this kernel, which reads a,
    for x: c[n + x] = cos(b[x])         and not to this one

Where a concatenation is split (see concatenation.py), each part computes for itself what leads to it, and the nodes on
the way have no loop of their own any more. Decisions know the last part's kernel by all of them. When all is decided,
they are counted to the kernel whose part reads what they are made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.schedule.group import Group, Member
from compiler.schedule.units import Unit


def counted_to_their_parts(units: Sequence[Unit]) -> list[Unit]:
    """The units, where a node without a loop that is made from nothing of its own kernel is a member of another one: of
    that which writes a part of the same concatenation, and reads most of what the node is made from."""
    found = list(units)
    loads: dict[str, dict[int, set[str]]] = {}
    for number, unit in enumerate(units):
        for member in unit.members if isinstance(unit, Group) else ():
            if member.node.part_of is not None:
                loads.setdefault(member.node.part_of, {}).setdefault(number, set()).update(member.body.loads)
    for number, unit in enumerate(units):
        if isinstance(unit, Group):
            wholes = sorted({member.node.part_of for member in unit.members if member.node.part_of is not None})
            for whole in wholes:
                others = {other: read for other, read in loads[whole].items() if other != number}
                _hand_over(found, number, whole, others)
    return found


def _hand_over(units: list[Unit], number: int, whole: str, others: dict[int, set[str]]) -> None:
    group = units[number]
    assert isinstance(group, Group)
    known = set(group.read_buffers).union(member.name for member in group.members if member.body.instructions)
    leaves: dict[str, set[str]] = {}
    for member in group.members if others else ():
        if member.body.instructions:
            continue
        loads = member.node.body.loads
        leaves[member.name] = {leaf for buffer in loads for leaf in leaves.get(buffer, {buffer})}
        shared = {other: len(leaves[member.name] & read) for other, read in others.items()}
        if leaves[member.name].isdisjoint(known) and any(shared.values()):
            _move(member, whole, units, number, max(shared, key=lambda other: (shared[other], other)))


def _move(member: Member, whole: str, units: list[Unit], one: int, other: int) -> None:
    """To before the part that it leads to."""
    group, target = units[one], units[other]
    assert isinstance(group, Group) and isinstance(target, Group)
    position = next(p for p, known in enumerate(target.members) if known.node.part_of == whole)
    units[one] = replace(group, members=tuple(known for known in group.members if known is not member))
    units[other] = replace(target, members=(*target.members[:position], member, *target.members[position:]))
