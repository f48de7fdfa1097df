"""The lifetime of each buffer, and the memory that is alive at a time.

A buffer is alive from the unit that makes it to its last reader, an output to the end. What a scatter changes in place
is one piece of memory with the scatter's own buffer. Inputs and constants belong to the caller and do not count. Sizes
that differ from call to call count as what they were in the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from compiler.ir.nodes import Layout
from compiler.ir.size import Integer, hint
from compiler.schedule.group import Group, Member
from compiler.schedule.units import Unit


@dataclass(frozen=True)
class Lifetime:
    """Positions of the first and the last unit that need a piece of memory, both inclusive."""

    first: int
    last: int
    bytes: int


def storage_bytes(layout: Layout) -> Integer:
    return layout.storage_numel * layout.dtype.itemsize


def updates_of(units: Iterable[Unit]) -> dict[str, str]:
    """The buffers of scatters, each with the one that it updates in place; and those of parts of a whole, each with
    that of the part that is made first."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for unit in units:
        for member in _members_by_name(unit):
            if member.node.updates is not None:
                found[member.name] = member.node.updates
            elif member.node.part_of is not None and first.setdefault(member.node.part_of, member.name) != member.name:
                found[member.name] = first[member.node.part_of]
    return found


def wholes_of(units: Iterable[Unit]) -> dict[str, str]:
    """The buffers that are parts of a whole, each with that."""
    nodes = (member.node for unit in units for member in _members_by_name(unit))
    return {node.name: node.part_of for node in nodes if node.part_of is not None}


def _members_by_name(unit: Unit) -> list[Member]:
    return sorted(unit.members, key=lambda member: member.name) if isinstance(unit, Group) else []


def last_uses(units: Sequence[Unit], outputs: Iterable[str]) -> dict[str, int]:
    """The position of the last unit that reads or makes each buffer; outputs are needed after all of them."""
    last = {name: position for position, unit in enumerate(units) for name in unit.needed | unit.stored}
    updates = updates_of(units)
    for name in wholes_of(units).keys() & updates.keys():
        # Memory that the first part has is there until the last one has filled its slice.
        last[updates[name]] = max(last[updates[name]], last.get(name, -1))
    return last | dict.fromkeys(outputs, len(units))


def lifetimes(units: Sequence[Unit], layouts: Mapping[str, Layout], outputs: Collection[str]) -> dict[str, Lifetime]:
    """The life of each piece of memory that the units make, by the buffer that it is made for."""
    last, updates = last_uses(units, outputs), updates_of(units)
    found: dict[str, Lifetime] = {}
    for position, unit in enumerate(units):
        for name in sorted(unit.stored):
            root = name
            while root in updates:
                root = updates[root]
            ends = last.get(name, position)
            if root == name:
                found[name] = Lifetime(position, ends, hint(storage_bytes(layouts[name])))
            elif root in found:
                before = found[root]
                found[root] = Lifetime(before.first, max(before.last, ends), before.bytes)
    return found


def live_bytes(lives: Iterable[Lifetime], count: int) -> list[int]:
    """Bytes alive while each of `count` units runs, and after the last one."""
    change = [0] * (count + 2)
    for life in lives:
        change[life.first] += life.bytes
        change[life.last + 1] -= life.bytes
    return list(accumulate(change))[: count + 1]


def peak_bytes(units: Sequence[Unit], layouts: Mapping[str, Layout], outputs: Collection[str]) -> int:
    """The most bytes that are alive at one time when units run in this order and no memory is used twice."""
    return max(live_bytes(lifetimes(units, layouts, outputs).values(), len(units)))


def read_again(units: Sequence[Unit], outputs: Collection[str]) -> dict[str, frozenset[str]]:
    """The buffers that are read after each group, by its name, and should stay in the cache: by another unit, or by
    whoever gets the outputs, such as the backward graph."""
    found: dict[str, frozenset[str]] = {}
    later = set(outputs)
    for unit in reversed(units):
        if isinstance(unit, Group):
            found[unit.name] = unit.needed & later
        later |= unit.needed
    return found
