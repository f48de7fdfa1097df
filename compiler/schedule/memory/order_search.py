"""Search for an order of few units that needs less memory than a known one, over sets of units that have run.

Which memory is alive when a set of units has run does not depend on their order, so of all orders of one set only the
one with the lowest peak is gone on with; none that is no better than the known order; and of each number of units no
more than the `WIDTH` most promising sets. Where that last limit never holds, the result is the best order there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compiler.ir.nodes import LoopGraph
from compiler.schedule.memory.lifetimes import lifetimes, stored_by, updates_of
from compiler.schedule.units import Unit, produced_by, read_by

#: More units than these are left in the order that is known.
MOST_UNITS = 48
#: Sets of as many units that are gone on with.
WIDTH = 32
#: Of more units than these an order is looked for only where it may be lower by that many bytes.
FEW_UNITS, WORTH_IT = 12, 1 << 20


@dataclass
class _Piece:
    """Memory that one unit makes; `users` is the set of units that need it, as bits."""

    bytes: int
    users: int = 0
    is_output: bool = False


class _Run(NamedTuple):
    """Units that have run: the last one, and what ran before it; bytes that are alive then, and the most so far; the
    units that may run next, as bits."""

    peak: int
    alive: int
    ready: int
    last: int = -1
    before: _Run | None = None


def better_order(units: Sequence[Unit], graph: LoopGraph, known_peak: int) -> list[Unit] | None:
    """The units in an order whose peak is lower than `known_peak`; None where none is found, or there are too many."""
    if len(units) > MOST_UNITS:
        return None
    search = _Search(units, graph)
    least = search.lower_bound()
    if least >= known_peak or (len(units) > FEW_UNITS and known_peak - least < WORTH_IT):
        return None
    found = search.run(known_peak)
    return None if found is None else [units[number] for number in found]


class _Search:
    def __init__(self, units: Sequence[Unit], graph: LoopGraph) -> None:
        self.count = len(units)
        maker = {name: number for number, unit in enumerate(units) for name in produced_by(unit)}
        self.needs = [
            sum({1 << maker[b] for b in read_by(unit) if maker.get(b, number) != number})
            for number, unit in enumerate(units)
        ]
        self.made: list[list[_Piece]] = [[] for _ in units]
        self.touched: list[list[_Piece]] = [[] for _ in units]
        self._find_pieces(units, graph)
        self.made_bytes = [sum(piece.bytes for piece in made) for made in self.made]
        #: The units that need something of each.
        self.readers = [
            [reader for reader in range(self.count) if self.needs[reader] >> number & 1] for number in range(self.count)
        ]

    def _find_pieces(self, units: Sequence[Unit], graph: LoopGraph) -> None:
        updates, outputs = updates_of(units), graph.output_buffers
        pieces: dict[str, _Piece] = {}
        for name, life in lifetimes(units, graph.buffers, outputs).items():
            pieces[name] = _Piece(life.bytes)
            self.made[life.first].append(pieces[name])
        users: defaultdict[str, int] = defaultdict(int)
        for number, unit in enumerate(units):
            for name in read_by(unit) | stored_by(unit):
                root = name
                while root in updates:
                    root = updates[root]
                users[root] |= 1 << number
                if root in pieces:
                    pieces[root].is_output |= name in outputs
        for name, piece in pieces.items():
            piece.users = users[name]
            for number in range(self.count):
                if piece.users >> number & 1 and not piece.is_output:
                    self.touched[number].append(piece)

    def lower_bound(self) -> int:
        """Bytes that any order needs: what one unit makes and reads, or all results."""
        alone = [
            sum({id(piece): piece.bytes for piece in (*self.made[n], *self.touched[n])}.values())
            for n in range(self.count)
        ]
        results = sum(piece.bytes for made in self.made for piece in made if piece.is_output)
        return max([results, *alone], default=0)

    def run(self, known_peak: int) -> list[int] | None:
        """The order with the lowest peak below `known_peak` that is found."""
        states = {0: _Run(0, 0, sum(1 << number for number in range(self.count) if not self.needs[number]))}
        for _ in range(self.count):
            following: dict[int, _Run] = {}
            for done, run in states.items():
                for number in _places(run.ready):
                    peak = max(run.peak, run.alive + self.made_bytes[number])
                    after = done | 1 << number
                    known = following.get(after)
                    if peak < known_peak and (known is None or peak < known.peak):
                        following[after] = self._after(number, after, peak, run)
            states = following
            if len(states) > WIDTH:
                best = sorted(states.items(), key=lambda item: (item[1].peak, item[1].alive, item[0]))
                states = dict(best[:WIDTH])
        found = next(iter(states.values()), None)
        order: list[int] = []
        while found is not None and found.before is not None:
            order.append(found.last)
            found = found.before
        return order[::-1] if order else None

    def _after(self, number: int, done: int, peak: int, run: _Run) -> _Run:
        freed = sum(piece.bytes for piece in self.touched[number] if not piece.users & ~done)
        ready = run.ready & ~(1 << number)
        for reader in self.readers[number]:
            if not self.needs[reader] & ~done:
                ready |= 1 << reader
        return _Run(peak, run.alive + self.made_bytes[number] - freed, ready, number, run)


def _places(bits: int) -> Iterator[int]:
    """The places of the ones, lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
