"""The graph that the scheduler works on: units, who makes what, who reads what, who comes before whom.

A unit is a fused group or a library call. Order between units is kept as bit sets of nodes, or of the units that a
graph begins with: `bits[u]` are those that unit u is made of, `ancestors[u]` those that must run before it,
`descendants[u]` those that must run after it. So "is there a path through a third unit" is one `and` of two integers,
and a fusion changes only the sets of units that came before or after one of the two and not the other.
"""

from __future__ import annotations

from bisect import bisect, bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from graphlib import TopologicalSorter
from heapq import nsmallest

from compiler.ir.nodes import ExternNode, Layout, LoopGraph, LoopNode
from compiler.schedule.group import Group, Member, Space

Unit = Group | ExternNode

#: Readers of one buffer that are looked at from each of them.
NEAREST = 24


def single(node: LoopNode) -> Group:
    """A group of one node, over the node's own loops, that stores its buffer (which a check has none of)."""
    stored = frozenset({node.name}) if node.check is None else frozenset[str]()
    return Group(node.name, Space(node.x_dims, node.r_dims), (Member(node, node.body),), stored)


class UnitGraph:
    """Units by number, with their dependencies; `merge` replaces two units by one. They begin as the nodes of `graph`,
    or as `units` of these in an order that they may run in."""

    def __init__(self, graph: LoopGraph, units: Sequence[Unit] | None = None) -> None:
        self.graph = graph
        self.layouts: dict[str, Layout] = graph.buffers
        self.outputs = graph.output_buffers
        #: What is filled part by part, which must be in memory whoever reads it.
        self.parts = {
            node.name: node.part_of for node in graph.nodes if isinstance(node, LoopNode) and node.part_of is not None
        }
        #: Parts that nothing reads under their own names: the whole only follows them.
        self._slices = frozenset(name for name, whole in self.parts.items() if name != whole)
        self.units: dict[int, Unit] = {}
        self.producer: dict[str, int] = {}
        self.readers: defaultdict[str, set[int]] = defaultdict(set)
        #: The readers of buffers that have many, in the order in which they stand, with their positions.
        self._ordered: dict[str, list[tuple[int, int]]] = {}
        self.bits: dict[int, int] = {}
        self.ancestors: dict[int, int] = {}
        self.descendants: dict[int, int] = {}
        #: Where a node stood before fusion.
        self.position = {node.name: number for number, node in enumerate(graph.nodes)}
        if units is None:
            units = [single(node) if isinstance(node, LoopNode) else node for node in graph.nodes]
        self._unit_of = list(range(len(units)))
        for number, unit in enumerate(units):
            self.bits[number] = 1 << number
            self._seat(number, unit)
        self.order_anew()
        self._next = len(units)

    def _units_in(self, nodes: int) -> Iterator[int]:
        """The units that a bit set of nodes is made of."""
        while nodes:
            number = self._unit_of[nodes.bit_length() - 1]
            nodes &= ~self.bits[number]
            yield number

    def number_of(self, unit: Unit) -> int:
        """The unit that has the nodes of this one, which may have been there before."""
        return self.producer[min(unit.produced)]

    def first_position(self, number: int) -> int:
        """Where the earliest node of a unit stood before fusion."""
        return min(self.position[name] for name in self.units[number].names)

    def must_precede(self, a: int, b: int) -> bool:
        return bool(self.ancestors[b] & self.bits[a])

    def between(self, a: int, b: int) -> int | None:
        """A third unit that must run after `a` and before `b`, if there is one."""
        nodes = self.ancestors[b] & self.descendants[a]
        return self._unit_of[nodes.bit_length() - 1] if nodes else None

    def distance(self, a: int, b: int) -> int:
        """How far apart the first nodes of the two units stood before fusion."""
        one, two = (self.position[self.units[number].nodes[0].name] for number in (a, b))
        return abs(one - two)

    def escaping(self, buffers: Iterable[str], inside: set[int]) -> frozenset[str]:
        """Those of `buffers` that something outside the units `inside` still needs in memory."""
        kept, readers = self.outputs | self.parts.keys() if self.parts else self.outputs, self.readers
        return frozenset([b for b in buffers if b in kept or not readers[b] <= inside])

    def merge(self, a: int, b: int, group: Group) -> int:
        """Replace the units `a` and `b` by `group`; gives its number. The caller has made sure that it is legal."""
        number, self._next = self._next, self._next + 1
        for old in (a, b):
            self._unread(old)
            del self.units[old]
        self._merge_order(a, b, number)
        self._seat(number, group)
        return number

    def _merge_order(self, a: int, b: int, number: int) -> None:
        own = self.bits.pop(a) | self.bits.pop(b)
        self.bits[number] = own
        for position in _ones(own):
            self._unit_of[position] = number
        earlier, later = ((known.pop(a) & ~own, known.pop(b) & ~own) for known in (self.ancestors, self.descendants))
        before, after = earlier[0] | earlier[1], later[0] | later[1]
        self.ancestors[number], self.descendants[number] = before, after
        # A unit that follows both knew already all that comes before either.
        for unit in self._units_in(later[0] ^ later[1]):
            self.ancestors[unit] |= before | own
        for unit in self._units_in(earlier[0] ^ earlier[1]):
            self.descendants[unit] |= after | own

    def replace(self, number: int, group: Group) -> None:
        """Put another group in the place of one that has the same members and needs no unit that it did not need."""
        self._unread(number)
        self._seat(number, group)

    def order_anew(self) -> None:
        """Tell who waits for whom by what units read now: a unit that computes again what it read before, or does not
        need it any more, does not wait for its maker."""
        makers = {
            number: {self.producer[buffer] for buffer in unit.needed if buffer in self.producer} - {number}
            for number, unit in self.units.items()
        }
        # Not by who waited before: where a maker became one with a reader, a unit between them that does without the
        # maker now would wait for itself.
        numbers = list(TopologicalSorter(makers).static_order())
        for number in numbers:
            before = 0
            for maker in makers[number]:
                before |= self.ancestors[maker] | self.bits[maker]
            self.ancestors[number] = before
        for number in reversed(numbers):
            after = 0
            for buffer in self.units[number].produced:
                for reader in self.readers[buffer] - {number}:
                    after |= self.descendants[reader] | self.bits[reader]
            self.descendants[number] = after

    def neighbours(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Each of `numbers` with each unit that shares a buffer with it: its readers, its makers, other readers of what
        it reads.

        Where many read one buffer (a weight of every layer), only those that stand nearest count: pairs of readers far
        apart would be as many as the square of the graph, and would not meet in a kernel anyway."""
        for number in numbers:
            unit = self.units[number]
            found: dict[int, None] = {}
            for buffer in sorted(unit.produced - self._slices):
                found.update(dict.fromkeys(sorted(self.readers[buffer])))
            for buffer in sorted(unit.needed - self._slices):
                if buffer in self.producer:
                    found[self.producer[buffer]] = None
                found.update(dict.fromkeys(self._nearest_readers(buffer, number)))
            yield from ((number, other) for other in found if other != number)

    def _nearest_readers(self, buffer: str, number: int) -> list[int]:
        """The readers of a buffer that stand nearest."""
        readers = self.readers[buffer]
        if len(readers) <= NEAREST:
            return sorted(readers)
        if buffer not in self._ordered:
            self._ordered[buffer] = sorted((self._position(reader), reader) for reader in readers)
        position, placed = self._position(number), self._ordered[buffer]
        middle = bisect(placed, (position, number))
        around = placed[max(0, middle - NEAREST) : middle + NEAREST]
        return sorted(reader for _, reader in nsmallest(NEAREST, around, key=lambda other: abs(other[0] - position)))

    def _position(self, number: int) -> int:
        """Where the last node of a unit stood before fusion."""
        return self.bits[number].bit_length()

    def _seat(self, number: int, unit: Unit) -> None:
        """Put a unit into the graph, which makes and reads its buffers from now on."""
        self.units[number] = unit
        for buffer in unit.produced:
            self.producer[buffer] = number
        for buffer in unit.needed:
            self.readers[buffer].add(number)
            if buffer in self._ordered:
                insort(self._ordered[buffer], (self._position(number), number))

    def _unread(self, number: int) -> None:
        """Take note that it reads nothing any more."""
        for buffer in self.units[number].needed:
            self.readers[buffer].discard(number)
            if buffer in self._ordered:
                placed = self._ordered[buffer]
                del placed[bisect_left(placed, (self._position(number), number))]


def _ones(bits: int) -> Iterator[int]:
    """The positions of the ones of a bit set, highest first."""
    while bits:
        position = bits.bit_length() - 1
        bits &= ~(1 << position)
        yield position
