"""Which buffers reach memory, how long they live, and whose storage they take over.

A buffer that stays inside one kernel is a register. Another one is allocated when its kernel is launched and freed
after its last reader, or its storage goes on to a later buffer:

    in place   a pointwise kernel writes over an input that dies there, if it reads that only at the element that it
               writes; a scatter always works in place, on the buffer that it updates
    reused     of the storage freed before, the smallest that is large enough, unless keeping it until then would raise
               the peak: memory that is let go can serve anybody

    written    an output that the caller would copy into an input, `p.copy_(new_p)`, takes the input's memory, and the
    back       copy finds nothing to do, if its kernel is the last to read that and reads it only where it writes

Storage of library results is not ours to shape, and other graph outputs get storage of their own, since the caller
keeps them. `peak_bytes` is what all of that comes to, inputs not counted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from compiler.ir.nodes import ExternNode, Layout
from compiler.ir.size import Integer, hint
from compiler.schedule.group import Batch, Group, parts_of
from compiler.schedule.memory.lifetimes import (
    last_uses,
    lifetimes,
    live_bytes,
    storage_bytes,
    updates_of,
    wholes_of,
)
from compiler.schedule.scheduler import Schedule
from compiler.schedule.units import Unit

Fate = Literal["input", "output", "register", "reused", "in_place", "allocated", "dead"]

#: Buffers whose storage is ours to let go.
_FREED = ("allocated", "reused", "in_place")
#: Storage that is this many times too large is left alone.
MOST_SLACK = 8


@dataclass(frozen=True)
class PlannedBuffer:
    """`first` and `last` are positions of units (-1: before the first one); `takes_over` names the buffer whose
    storage it gets, where its fate is "reused" or "in_place" or where a scatter works in place."""

    name: str
    layout: Layout
    fate: Fate
    first: int | None
    last: int | None
    takes_over: str | None = None


@dataclass(frozen=True)
class MemoryPlan:
    """What became of each buffer of a schedule, by its name, and how much memory that takes."""

    buffers: dict[str, PlannedBuffer]
    #: Buffers to let go after each unit, by its position.
    freed_after: dict[int, tuple[str, ...]]
    #: Bytes alive while each unit runs, and after the last; inputs not counted, at the sizes of the first call.
    live_bytes: tuple[int, ...]
    #: Parts of a whole that are in the memory of another part, each with that; the whole itself is not among them.
    slices: Mapping[str, str] = field(default_factory=dict)
    #: The outputs that the caller copies into an input, each with that.
    written_back: Mapping[str, str] = field(default_factory=dict)

    @property
    def peak_bytes(self) -> int:
        """The most that is alive at one time."""
        return max(self.live_bytes)

    def written_over(self, group: Group) -> frozenset[str]:
        """The buffers of a kernel that are one piece of memory with another one of it; slices of it are not."""
        parts = frozenset(member.name for member in group.members if member.node.part_of is not None)
        pairs = [
            (name, self.buffers[name].takes_over)
            for name in group.stored - parts
            if self.buffers[name].fate in ("in_place", "output") and self.buffers[name].takes_over not in group.updated
        ]
        return frozenset(name for pair in pairs if pair[1] is not None for name in pair if name is not None)

    def written_inputs(self) -> frozenset[str]:
        """The inputs whose memory an output takes."""
        taken = {b.takes_over for b in self.buffers.values() if b.takes_over is not None}
        return frozenset(name for name in taken if self.buffers[name].fate == "input")


def plan_memory(schedule: Schedule, written_back: Mapping[str, str] | None = None) -> MemoryPlan:
    """Lifetimes and reuse for the buffers of a schedule. `written_back` has the outputs that the caller copies into an
    input, each with that."""
    return _Planner(schedule, written_back or {}).plan()


@dataclass
class _Pool:
    """Freed storage by its size."""

    names: defaultdict[Integer, list[str]] = field(default_factory=lambda: defaultdict(list))
    sizes: list[int] = field(default_factory=list)

    def add(self, size: Integer, name: str) -> None:
        if isinstance(size, int) and not self.names[size]:
            insort(self.sizes, size)
        self.names[size].append(name)

    def fitting(self, size: Integer) -> Iterator[tuple[Integer, str]]:
        """What is large enough, the best fit first; of one size, what was freed last."""
        if not isinstance(size, int):
            yield from ((size, name) for name in reversed(self.names[size]))
            return
        for number in range(bisect_left(self.sizes, size), len(self.sizes)):
            if self.sizes[number] > MOST_SLACK * size:
                return
            yield self.sizes[number], self.names[self.sizes[number]][-1]

    def take(self, size: Integer, name: str) -> None:
        self.names[size].remove(name)
        if isinstance(size, int) and not self.names[size]:
            self.sizes.remove(size)


class _Planner:
    def __init__(self, schedule: Schedule, written_back: Mapping[str, str]) -> None:
        self.schedule = schedule
        self.written_back = written_back
        self.units = schedule.units
        self.layouts = schedule.graph.buffers
        self.outputs = schedule.graph.output_buffers
        self.last_use = last_uses(self.units, self.outputs)
        self.updates = updates_of(self.units)
        self.wholes = wholes_of(self.units)
        self.updated = frozenset(self.updates.values())
        self.kept = _kept(self.outputs, self.updates)
        self.planned: dict[str, PlannedBuffer] = {}
        self.pool = _Pool()
        #: Bytes of the storage of each buffer, which may be larger than the buffer itself.
        self.storage: dict[str, Integer] = {}
        self.lives = lifetimes(self.units, self.layouts, self.outputs)
        self.live = live_bytes(self.lives.values(), len(self.units))
        self.most = max(self.live)

    def plan(self) -> MemoryPlan:
        given = [name for name in self.schedule.graph.inputs if name is not None]
        for name in (*given, *self.schedule.graph.constants):
            self.planned[name] = PlannedBuffer(name, self.layouts[name], "input", -1, self.last_use.get(name))
        freed: dict[int, tuple[str, ...]] = {}
        slices = {
            name: self.updates[name] for name, whole in self.wholes.items() if name != whole and name in self.updates
        }
        for position, unit in enumerate(self.units):
            dying = self._dying(position, unit)
            for name in sorted(unit.produced):
                self.planned[name] = self._plan_one(name, unit, position, dying)
            touched = (unit.needed | unit.stored) - slices.keys()
            gone = [name for name in sorted(touched) if self._dies(name, position)]
            for name in gone:
                if self._may_hand_on(name) and name not in self._taken:
                    self.pool.add(self.storage[name], name)
            freed[position] = tuple(gone)
        for name in self.schedule.dead:
            if name in self.layouts:
                self.planned[name] = PlannedBuffer(name, self.layouts[name], "dead", None, None)
        return MemoryPlan(self.planned, freed, tuple(self.live), slices, self.written_back)

    def _dies(self, name: str, position: int) -> bool:
        is_ours = name in self.planned and self.planned[name].fate in _FREED
        return is_ours and self.last_use.get(name, position) == position

    def _may_hand_on(self, name: str) -> bool:
        """Only storage that we allocated; what a scatter changed in place lives on under the scatter's name, and what
        is filled part by part under that of the whole."""
        maker = self.units[self.planned[name].first or 0]
        if name in self.wholes:
            return self.wholes[name] == name
        return not isinstance(maker, ExternNode) and name not in self.updated

    def _dying(self, position: int, unit: Unit) -> list[str]:
        """Buffers that the unit is the last to need, whose storage it may write its results over."""
        self._taken: set[str] = set()
        if not isinstance(unit, Group) or isinstance(unit, Batch) or unit.space.r:
            return []
        return [n for n in sorted(unit.needed) if self._dies(n, position) and self._may_hand_on(n)]

    def _plan_one(self, name: str, unit: Unit, position: int, dying: list[str]) -> PlannedBuffer:
        layout, last = self.layouts[name], self.last_use.get(name, position)
        if name in self.updates:
            fate: Fate = "output" if name in self.outputs else "in_place"
            self.storage[name] = self.storage.get(self.updates[name], storage_bytes(layout))
            return PlannedBuffer(name, layout, fate, position, last, self.updates[name])
        if name not in unit.stored:
            return PlannedBuffer(name, layout, "register", position, position)
        self.storage[name] = storage_bytes(layout)
        given = None if name in self.wholes else self.written_back.get(name)
        if given is not None and self._may_write_input(unit, position, name, given):
            for step in range(position, len(self.live)):
                self.live[step] -= hint(self.storage[name])
            return PlannedBuffer(name, layout, "output", position, last, given)
        if name in self.kept:
            return PlannedBuffer(name, layout, "output" if name in self.outputs else "allocated", position, last)
        if isinstance(unit, Group) and layout.numel != 0:
            below = next((old for old in dying if self._may_write_over(unit, name, old)), None)
            if below is not None:
                self._hand_on(below, name, position)
                return PlannedBuffer(name, layout, "in_place", position, last, below)
            source = self._from_pool(name, position)
            if source is not None:
                return PlannedBuffer(name, layout, "reused", position, last, source)
        return PlannedBuffer(name, layout, "allocated", position, last)

    def _may_write_input(self, unit: Unit, position: int, name: str, given: str) -> bool:
        """Whether `unit`, at `position`, may write the buffer `name` to the memory of the input `given`."""
        layout = self.layouts[name]
        if not isinstance(unit, Group) or layout != self.layouts[given] or layout.storage_numel != layout.numel:
            return False
        if self.last_use.get(given, -1) > position:
            return False
        readers = [part for part in parts_of(unit) if given in part.needed]
        if not readers:
            return True
        return len(readers) == 1 and name in readers[0].stored and _reads_where_it_writes(readers[0], name, given)

    def _may_write_over(self, group: Group, name: str, old: str) -> bool:
        """Whether each element of `old` is read only at the point that writes the element of `name` in its place, and
        no later than that."""
        ours, theirs = self.layouts[name], self.layouts[old]
        if old in self._taken or name in self.updated or name in self.wholes or ours.dtype != theirs.dtype:
            return False
        storage, wanted = self.storage[old], self.storage[name]
        if storage != wanted:
            is_large = isinstance(storage, int) and isinstance(wanted, int) and storage > wanted
            if not is_large or self._would_peak_at(old, name, self.planned[old].last or 0) > self.most:
                return False
        return _reads_where_it_writes(group, name, old)

    def _from_pool(self, name: str, position: int) -> str | None:
        for size, source in self.pool.fitting(self.storage[name]):
            if self._would_peak_at(source, name, position) <= self.most:
                self.pool.take(size, source)
                self._hand_on(source, name, position)
                return source
        return None

    def _would_peak_at(self, source: str, name: str, position: int) -> int:
        """The most bytes alive while the storage waits for its next buffer and then serves it."""
        died, ends, size = self.last_use.get(source, position), self.lives[name].last, hint(self.storage[source])
        waiting = max(self.live[died + 1 : position], default=0) + size
        return max(waiting, max(self.live[position : ends + 1]) + size - self.lives[name].bytes)

    def _hand_on(self, source: str, name: str, position: int) -> None:
        """Take note that `name` gets the storage of `source`, which therefore stays alive until then."""
        died = self.last_use.get(source, position)
        size, own, ends = hint(self.storage[source]), self.lives[name].bytes, self.lives[name].last
        for step in range(died + 1, position):
            self.live[step] += size
        for step in range(position, ends + 1):
            self.live[step] += size - own
        if died == position:
            self.live[position] -= size
        self.storage[name] = self.storage[source]
        self._taken.add(source)


def _kept(outputs: frozenset[str], updates: dict[str, str]) -> frozenset[str]:
    """Buffers whose storage the caller gets: graph outputs, and what scatters turn into one."""
    kept = set(outputs)
    for name in outputs:
        while name in updates:
            name = updates[name]
            kept.add(name)
    return frozenset(kept)


def _reads_where_it_writes(group: Group, name: str, old: str) -> bool:
    """Whether a kernel without reductions reads each element of `old` only at the point that writes the element of
    `name` in its place, and first no later than that."""
    if group.space.r:
        return False
    positions = {member.name: number for number, member in enumerate(group.members)}
    written = group.members[positions[name]].body.writes
    reads = [
        (number, i)
        for number, member in enumerate(group.members)
        for i in member.body.instructions if i.op == "load" and i.buffer == old
    ]  # fmt: skip
    # An element is loaded once, where it is needed first: what needs it after the write has it in a register.
    is_loaded_before = not reads or reads[0][0] <= positions[name]
    return (
        len(written) == 1
        and is_loaded_before
        and all(not i.operands and i.dtype == reads[0][1].dtype and i.index == written[0].index for _, i in reads)
    )
