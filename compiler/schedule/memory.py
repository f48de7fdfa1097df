"""Which buffers reach memory, how long they live, and whose storage they take over.

A buffer that stays inside one kernel is a register. Another one is allocated when its kernel is launched and freed
after its last reader; a later buffer of the same size takes over freed storage. A scatter works in place: its buffer is
the storage of the one that it updates. Graph outputs always get storage of their own, since the caller keeps them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from compiler.ir.nodes import ExternNode, Layout
from compiler.ir.size import Integer
from compiler.schedule.group import Group
from compiler.schedule.scheduler import Schedule
from compiler.schedule.units import Unit, produced_by, read_by

Fate = Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"]

#: Buffers whose storage is ours to let go.
_FREED = ("allocated", "reused", "in_place")


@dataclass(frozen=True)
class PlannedBuffer:
    """`first` and `last` are positions of units (-1: before the first one); `takes_over` names the buffer whose
    storage it gets, where its fate is "reused" or where a scatter works in place."""

    name: str
    layout: Layout
    fate: Fate
    first: int | None
    last: int | None
    takes_over: str | None = None


@dataclass(frozen=True)
class MemoryPlan:
    buffers: dict[str, PlannedBuffer]
    #: Buffers to let go after each unit, by its position.
    freed_after: dict[int, tuple[str, ...]]


def plan_memory(schedule: Schedule) -> MemoryPlan:
    """Lifetimes and reuse for the buffers of a schedule."""
    last_use = _last_uses(schedule)
    updates = _updates(schedule)
    updated = frozenset(updates.values())
    planned: dict[str, PlannedBuffer] = {}
    outputs = schedule.graph.output_buffers
    kept = _kept(outputs, updates)
    given = [name for name in schedule.graph.inputs if name is not None]
    for name in (*given, *schedule.graph.constants):
        planned[name] = PlannedBuffer(name, schedule.graph.buffers[name], "input", -1, last_use.get(name))
    pool: defaultdict[Integer, list[str]] = defaultdict(list)
    freed: dict[int, tuple[str, ...]] = {}
    for position, unit in enumerate(schedule.units):
        for name in sorted(produced_by(unit)):
            if name in updates:
                fate: Fate = "output" if name in outputs else "in_place"
                last, layout = last_use.get(name, position), schedule.graph.buffers[name]
                planned[name] = PlannedBuffer(name, layout, fate, position, last, updates[name])
            else:
                planned[name] = _plan_one(name, unit, position, schedule, last_use, kept, pool)
        dying = [
            n
            for n in sorted(read_by(unit) | _stored(unit))
            if last_use.get(n, position) == position and n in planned and planned[n].fate in _FREED
        ]
        for name in dying:
            # Storage of library results is not ours to shape, so only what we allocated is handed on; what a scatter
            # changed in place lives on under the scatter's name.
            if not isinstance(schedule.units[planned[name].first or 0], ExternNode) and name not in updated:
                pool[_storage_bytes(planned[name].layout)].append(name)
        freed[position] = tuple(dying)
    for name in schedule.dead:
        if name in schedule.graph.buffers:
            planned[name] = PlannedBuffer(name, schedule.graph.buffers[name], "dead", None, None)
    return MemoryPlan(planned, freed)


def _updates(schedule: Schedule) -> dict[str, str]:
    """The buffers of scatters, each with the one that it updates in place."""
    members = [member for unit in schedule.units if isinstance(unit, Group) for member in unit.members]
    return {member.name: member.node.updates for member in members if member.node.updates is not None}


def _kept(outputs: frozenset[str], updates: dict[str, str]) -> frozenset[str]:
    """Buffers whose storage the caller gets: graph outputs, and what scatters turn into one."""
    kept = set(outputs)
    for name in outputs:
        while name in updates:
            name = updates[name]
            kept.add(name)
    return frozenset(kept)


def _storage_bytes(layout: Layout) -> Integer:
    return layout.storage_numel * layout.dtype.itemsize


def _stored(unit: Unit) -> frozenset[str]:
    return unit.stored if isinstance(unit, Group) else frozenset(unit.write_buffers)


def _last_uses(schedule: Schedule) -> dict[str, int]:
    last: dict[str, int] = {}
    for position, unit in enumerate(schedule.units):
        for name in read_by(unit) | _stored(unit):
            last[name] = position
    for name in schedule.graph.output_buffers:
        last[name] = len(schedule.units)
    return last


def _plan_one(
    name: str,
    unit: Unit,
    position: int,
    schedule: Schedule,
    last_use: dict[str, int],
    kept: frozenset[str],
    pool: defaultdict[Integer, list[str]],
) -> PlannedBuffer:
    layout = schedule.graph.buffers[name]
    if name not in _stored(unit):
        return PlannedBuffer(name, layout, "register", position, position)
    if name in kept:
        is_output = name in schedule.graph.output_buffers
        last = len(schedule.units) if is_output else last_use.get(name, position)
        return PlannedBuffer(name, layout, "output" if is_output else "allocated", position, last)
    free = pool[_storage_bytes(layout)]
    if free and isinstance(unit, Group) and layout.numel != 0:
        return PlannedBuffer(name, layout, "reused", position, last_use.get(name, position), free.pop())
    return PlannedBuffer(name, layout, "allocated", position, last_use.get(name, position))
