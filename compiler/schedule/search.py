"""The search for fusions: greedy, the best candidate first, out of a priority queue.

    round 1   ask `can_fuse` about every pair that shares a buffer; queue the fusions that it allows by their score
              take the best of the queue: its two units become one
    round n   ask about the pairs of what round n - 1 made, and queue what is allowed; take the best of the queue

So a round is one fusion and the questions that came before it, and the search ends when the queue is empty: then no
pair is left that may and should fuse. A candidate stays as good as it was until one of its units is gone, so only the
neighbours of a new unit are scored; all that another fusion can change is that a third unit now has to run between the
two, which is looked at once more when the candidate's turn comes. Every answer leaves a decision; a candidate whose
units went elsewhere, and are in two kernels in the end, leaves one too.

Library calls come last, when loops have found together: a product that took in the first node of a pointwise chain
before the others have joined it would tear the chain apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from compiler.decisions import Refuse
from compiler.ir.nodes import ExternNode
from compiler.schedule.group import Group
from compiler.schedule.recompute import Recomputed, recompute_in_readers
from compiler.schedule.records.decisions import Decision, decision_on
from compiler.schedule.rules import Context, Fuse, can_fuse, third_between
from compiler.schedule.rules.concatenation import makers_of, splits_in_parts, weigh_parts
from compiler.schedule.rules.products import is_call
from compiler.schedule.rules.shared_operand import may_share
from compiler.schedule.units import Unit


@dataclass(frozen=True)
class Candidate:
    """A fusion in the queue: two units, and the round in which it was allowed."""

    a: int
    b: int
    one: Unit
    two: Unit
    verdict: Fuse
    turn: int


class Search:
    """One search over the units of a context's graph, which it changes; `decisions` are its records, `turn` the number
    of the round that it is in."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.graph = context.graph
        self.decisions: list[Decision] = []
        self.turn = 1
        self._queue: list[tuple[tuple[int, ...], int, Candidate]] = []
        self._passed_over: list[Candidate] = []
        self._asked = count()
        self._about_calls = False

    def run(self) -> None:
        """Fuse until nothing pays; then drop buffers that are cheaper to compute again, or write concatenations part by
        part, and fuse what that allows."""
        if self.decisions:
            # What the reader asked for was fused before, in a round of its own.
            self.turn += 1
        changed: Iterable[int] = list(self.graph.units)
        while changed:
            self._fuse(changed)
            changed = self._recompute()
            if not changed and self._write_in_parts():
                changed = self._recompute()
        self._about_calls = True
        self._fuse([number for number, unit in self.graph.units.items() if is_call(unit)])
        self._record_what_was_passed_over()

    def _fuse(self, units: Iterable[int]) -> None:
        """Ask about these units, and take the best candidate until none is left."""
        self.ask(units)
        while self._take_best():
            pass

    def ask(self, units: Iterable[int]) -> None:
        """Score the pairs of these units and their neighbours: each is queued, or refused."""
        for a, b in _pairs(self.context, units, self._about_calls):
            verdict = can_fuse(a, b, self.context)
            if isinstance(verdict, Fuse):
                # Of equal scores, that of the pair that was asked about first.
                rank = tuple(-part for part in verdict.score.rank)
                candidate = Candidate(a, b, self.graph.units[a], self.graph.units[b], verdict, self.turn)
                heappush(self._queue, (rank, next(self._asked), candidate))
            else:
                self.record(a, b, verdict)

    def record(self, a: int, b: int, verdict: Fuse | Refuse, about: str | None = None) -> None:
        self.decisions.append(decision_on(self.graph, a, b, self.turn, verdict, about))

    def take(self, a: int, b: int, verdict: Fuse) -> int:
        """Make the two units one, which ends the round; gives its number."""
        self.record(a, b, verdict)
        self.turn += 1
        return self.graph.merge(a, b, verdict.group)

    def _take_best(self) -> bool:
        """Take the best candidate, and score the neighbours of what it makes; False if none is left."""
        while self._queue:
            _, _, candidate = heappop(self._queue)
            a, b, verdict = candidate.a, candidate.b, candidate.verdict
            if a not in self.graph.units or b not in self.graph.units:
                self._passed_over.append(candidate)
                continue
            third = third_between(a, b, self.graph)
            if third is None:
                self.ask([self.take(a, b, verdict)])
                return True
            self.record(a, b, third)
        return False

    def _record_what_was_passed_over(self) -> None:
        """Records of fusions that were allowed and never taken, in the rounds in which they were queued."""
        for candidate in self._passed_over:
            one, two, verdict = candidate.one, candidate.two, candidate.verdict
            if self.graph.number_of(one) != self.graph.number_of(two):
                saved = {"bytes_saved": verdict.score.bytes_saved}
                refusal = Refuse("policy.outscored", verdict.numbers | saved)
                layouts = self.graph.layouts
                self.decisions.append(Decision(candidate.turn, one, two, layouts, refusal, verdict.stored))
        self._passed_over.clear()
        self.decisions.sort(key=lambda decision: decision.round)

    def _recompute(self) -> list[int]:
        """Drop the buffers that are cheaper to compute again, in a round of their own; gives the units that changed,
        which may fuse now."""
        graph, context = self.graph, self.context
        if "recompute" in context.disabled:
            return []
        changed: dict[int, None] = {}
        for number, unit in list(graph.units.items()):
            for buffer in sorted(unit.stored) if isinstance(unit, Group) else ():
                if number not in graph.units:
                    break
                involved = [graph.units[n] for n in (number, *sorted(graph.readers[buffer]))]
                if context.kept_stored.get(buffer) == involved:
                    continue
                found = recompute_in_readers(number, buffer, context)
                if isinstance(found, Recomputed):
                    changed |= dict.fromkeys(self._take_recomputed(number, buffer, found))
                    continue
                context.kept_stored[buffer] = involved
                if found is not None:
                    for reader in sorted(graph.readers[buffer] - {number}):
                        self.record(number, reader, found, about=buffer)
        if changed:
            graph.order_anew()
        self.turn += 1
        return sorted(number for number in changed if number in graph.units)

    def _write_in_parts(self) -> bool:
        """Let kernels that make parts of a concatenation write these where the result has them; gives whether any
        does. What fuses for that is asked about on a graph of its own, and counts only if it is taken."""
        changed = False
        units = [] if "parts" in self.context.disabled else list(self.graph.units.values())
        for unit in (unit for unit in units if isinstance(unit, Group)):
            for found in splits_in_parts(unit, self.context):
                trial = Search(replace(self.context, graph=found.graph))
                trial.turn = self.turn
                trial._fuse(found.numbers)
                refusal = weigh_parts(self.graph, trial.context)
                if refusal is None:
                    changed = True
                    self.decisions += trial.decisions
                    self._passed_over += trial._passed_over
                    self.context, self.graph, self.turn = trial.context, trial.graph, trial.turn
                    break
                for maker in makers_of(unit, self.graph) if found.is_for_makers else ():
                    self.record(maker, self.graph.number_of(unit), refusal)
        return changed

    def _take_recomputed(self, maker: int, buffer: str, found: Recomputed) -> list[int]:
        """Let the readers of a buffer compute it; gives the numbers of the units that are left."""
        for reader, verdict in sorted(found.readers.items()):
            self.record(maker, reader, verdict, about=buffer)
        first, *others = found.readers
        for reader in others if found.maker is None else found.readers:
            self.graph.replace(reader, found.readers[reader].group)
        if found.maker is None:
            return [self.graph.merge(maker, first, found.readers[first].group), *others]
        self.graph.replace(maker, found.maker)
        return [maker, *found.readers]


def _pairs(context: Context, units: Iterable[int], about_calls: bool) -> Iterator[tuple[int, int]]:
    """Distinct pairs of a unit and a neighbour, the one that must run first in front: pairs of loops, or pairs of a
    library call and loops. Two library calls are none, unless they are products of one operand."""
    graph = context.graph
    found: set[tuple[int, int]] = set()
    for number, other in graph.neighbours(units):
        pair = (number, other) if number < other else (other, number)
        if pair in found:
            continue
        found.add(pair)
        one, two = graph.units[number], graph.units[other]
        is_about_calls = is_call(one) or is_call(two)
        are_calls = isinstance(one, ExternNode) and isinstance(two, ExternNode)
        if is_about_calls == about_calls and (not are_calls or may_share(one, two, context)):
            yield pair if not graph.must_precede(pair[1], pair[0]) else (pair[1], pair[0])
