"""Orders of few units that need less memory than a known one: a search through sets of units that have run.

Which memory is alive when a set of units has run does not depend on their order, so of all orders of one set only the
one with the lowest peak is gone on with; none that is no better than the known order; and of each number of units no
more than the `WIDTH` most promising sets. Where that last limit never holds, the result is the best order there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.ir.nodes import LoopGraph
from compiler.schedule.lifetimes import lifetimes, stored_by, updates_of
from compiler.schedule.units import Unit, produced_by, read_by

#: More units than these are left in the order that is known.
MOST_UNITS = 48
#: Sets of as many units that are gone on with.
WIDTH = 64


@dataclass
class _Piece:
    """Memory that one unit makes; `users` is the set of units that need it, as bits."""

    bytes: int
    users: int = 0
    is_output: bool = False


@dataclass(frozen=True)
class _Run:
    """Units that have run: the last one, and what ran before it; bytes that are alive then, and the most so far."""

    peak: int
    alive: int
    last: int = -1
    before: _Run | None = field(default=None, compare=False)


def better_order(units: Sequence[Unit], graph: LoopGraph, known_peak: int) -> list[Unit] | None:
    """The units in an order whose peak is lower than `known_peak`; None where none is found, or there are too many."""
    if len(units) > MOST_UNITS:
        return None
    search = _Search(units, graph)
    if search.lower_bound() >= known_peak:
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
        states = {0: _Run(0, 0)}
        for _ in range(self.count):
            following: dict[int, _Run] = {}
            for done, run in states.items():
                for number in range(self.count):
                    if done >> number & 1 or self.needs[number] & ~done:
                        continue
                    after = self._after(number, done, run)
                    known = following.get(done | 1 << number)
                    if after.peak < known_peak and (known is None or after.peak < known.peak):
                        following[done | 1 << number] = after
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

    def _after(self, number: int, done: int, run: _Run) -> _Run:
        alive = run.alive + sum(piece.bytes for piece in self.made[number])
        peak = max(run.peak, alive)
        done |= 1 << number
        freed = sum(piece.bytes for piece in self.touched[number] if not piece.users & ~done)
        return _Run(peak, alive - freed, number, run)
