"""Choose the order of units that needs the least memory at a time, of two that are tried.

The first is the order in which the user wrote them. The second is greedy: of the units that are ready, it takes the one
that leads to the deepest valley over the lowest hill, after Liu's order of trees ("An application of generalized tree
pebbling to sparse matrix factorization", 1987): first those that end up with no more memory than before, lowest hill
first; then those whose hill stands highest over the valley behind it. It looks a few units ahead, along what becomes
ready; a unit is weighed again only when one beside it has run, so the order takes time in proportion to the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import torch

from compiler.ir.library_calls import BY_ROWS_APART, FUSED_CONVOLUTION
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.ir.size import hint
from compiler.schedule.memory.lifetimes import peak_bytes, storage_bytes
from compiler.schedule.units import Unit

#: Units that a choice looks ahead, and those that it picks the next of them from.
LOOKAHEAD = 4
BREADTH = 8

Key = tuple[int, int, int]


def in_order(units: Sequence[Unit], graph: LoopGraph) -> list[Unit]:
    """The units of `graph`, each after all that it needs."""
    written = as_written(units, graph)
    if any(isinstance(unit, ExternNode) and not is_free_to_move(unit) for unit in written):
        return written
    greedy = [units[number] for number in _Ordering(units, graph).greedy()]
    peaks = [peak_bytes(order, graph.buffers, graph.output_buffers) for order in (written, greedy)]
    return greedy if peaks[1] < peaks[0] else written


def as_written(units: Sequence[Unit], graph: LoopGraph) -> list[Unit]:
    """The units in an order that differs as little as possible from that of the user."""
    return [units[number] for number in _Ordering(units, graph).as_written()]


def is_free_to_move(node: ExternNode) -> bool:
    """Whether a library call may run earlier or later than others: it only computes its results, and draws none."""
    target: Any = node.target
    if target is FUSED_CONVOLUTION or target is BY_ROWS_APART:
        return True
    if not isinstance(target, torch._ops.OpOverload) or not node.write_buffers:
        return False
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags


class _Ordering:
    """One run over the units: who waits for whom, and which buffers still have readers."""

    def __init__(self, units: Sequence[Unit], graph: LoopGraph) -> None:
        self.units = units
        self.graph = graph
        positions = {node.name: position for position, node in enumerate(graph.nodes)}
        self.position = [min(positions[name] for name in unit.names) for unit in units]
        self.producer = {name: number for number, unit in enumerate(units) for name in unit.produced}
        self.makers: dict[int, set[int]] = {}
        self.consumers: defaultdict[int, set[int]] = defaultdict(set)
        self.readers: defaultdict[str, set[int]] = defaultdict(set)
        self.outputs = graph.output_buffers
        self.made: dict[int, int] = {}
        self.bytes: dict[str, int] = {}
        for number, unit in enumerate(units):
            self._add(number, unit)
        self.missing = {number: len(makers) for number, makers in self.makers.items()}

    def _add(self, number: int, unit: Unit) -> None:
        self.makers[number] = {self.producer[b] for b in unit.needed if b in self.producer} - {number}
        for maker in self.makers[number]:
            self.consumers[maker].add(number)
        for buffer in unit.needed:
            self.readers[buffer].add(number)
        made = {name: hint(storage_bytes(self.graph.buffers[name])) for name in unit.stored}
        self.made[number] = sum(made.values())
        self.bytes |= {name: size for name, size in made.items() if name not in self.outputs}

    def as_written(self) -> list[int]:
        """Of the units that are ready, always the one written first."""
        ready: list[tuple[int, int]] = []
        done: list[int] = []
        for number, count in self.missing.items():
            if not count:
                heappush(ready, (self.position[number], number))
        while ready:
            _, number = heappop(ready)
            done.append(number)
            for consumer in self._run(number):
                heappush(ready, (self.position[consumer], consumer))
        return done

    def greedy(self) -> list[int]:
        """Of the units that are ready, always the one that `_key` puts first."""
        heap: list[tuple[Key, int]] = []
        latest: dict[int, Key] = {}
        done: dict[int, None] = {}

        def weigh(number: int) -> None:
            latest[number] = self._key(number)
            heappush(heap, (latest[number], number))

        for number, count in self.missing.items():
            if not count:
                weigh(number)
        while heap:
            key, number = heappop(heap)
            if number in done or latest[number] != key:
                continue
            done[number] = None
            changed = set(self._run(number))
            for buffer in self.units[number].needed:
                if len(self.readers[buffer]) == 1:
                    changed |= self.readers[buffer]
            for consumer in self.consumers[number]:
                if self.missing[consumer] == 1:
                    changed |= self.makers[consumer] - done.keys()
            for other in changed:
                if not self.missing[other] and other not in done:
                    weigh(other)
        return list(done)

    def _run(self, number: int) -> list[int]:
        """Take note that a unit has run; gives those that are ready now."""
        for buffer in self.units[number].needed:
            self.readers[buffer].discard(number)
        for consumer in self.consumers[number]:
            self.missing[consumer] -= 1
        return sorted(consumer for consumer in self.consumers[number] if not self.missing[consumer])

    def _key(self, number: int) -> Key:
        """Smaller runs first. Hill and valley are bytes above those that are alive now."""
        hill, valley = self._ahead(number)
        position = self.position[number]
        return (0, hill, position) if valley <= 0 else (1, valley - hill, position)

    def _ahead(self, number: int) -> tuple[int, int]:
        """The lowest valley that running the unit, and then what that makes ready, leads to; and the hill before it."""
        run: set[int] = set()
        alive = hill = 0
        best: tuple[int, int] | None = None
        for _ in range(LOOKAHEAD):
            run.add(number)
            hill = max(hill, alive + self.made[number])
            alive += self._growth(number, run)
            if best is None or alive < best[1]:
                best = hill, alive
            following = sorted(self.consumers[number])[:BREADTH]
            ready = [other for other in following if other not in run and self._is_ready_after(other, run)]
            if not ready:
                break
            number = min(ready, key=lambda other: (self._growth(other, run | {other}), self.position[other]))
        assert best is not None
        return best

    def _is_ready_after(self, number: int, run: set[int]) -> bool:
        return self.missing[number] <= len(run) and self.missing[number] == len(self.makers[number] & run)

    def _growth(self, number: int, run: set[int]) -> int:
        """Bytes that are alive after the unit and were not before; `run` are the units that have run by then."""
        unit = self.units[number]
        freed = sum(self.bytes[b] for b in unit.needed if b in self.bytes and self.readers[b] <= run)
        unread = sum(self.bytes[b] for b in unit.stored if b in self.bytes and not self.readers[b])
        return self.made[number] - freed - unread
