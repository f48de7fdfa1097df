"""The scheduler's records as the report shows them: every pair with its numbers, and rounds that can be replayed.

A graph of 5,000 nodes has some 50,000 pairs. At most `MOST_DECISIONS` of them are told at length: half are for fusions,
half for refusals, those with most bytes at stake. Every other pair leaves four figures in `more_decisions`, and every
fusion three in `rounds`, so that no pair is without its reason and the groups after any round can be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compiler import report
from compiler.decisions import message_of
from compiler.ir.index import Index
from compiler.ir.size import Size
from compiler.schedule.group import Group
from compiler.schedule.memory.peaks import is_merge
from compiler.schedule.records.alike import not_asked
from compiler.schedule.records.decisions import Decision, access_of
from compiler.schedule.records.scores import Scores
from compiler.schedule.records.would_fuse import Pair, would_fuse_if
from compiler.schedule.rules import Context, Fuse
from compiler.schedule.scheduler import Schedule
from compiler.wording import counted

#: Decisions of one graph that the report tells at length.
MOST_DECISIONS = 2000
#: Refusals of one graph for which it is tried what would have to change.
MOST_TRIED = 200


class Numbers:
    """Numbers of units, as the report counts them: nodes in order, then what each fusion makes. Parts of a
    concatenation may be one kernel from the start, which no fusion made: they are `joined`."""

    def __init__(self, schedule: Schedule, context: Context | None = None) -> None:
        self.scores = Scores(schedule, context)
        self._numbers = {frozenset((node.name,)): position for position, node in enumerate(schedule.graph.nodes)}
        self._count = len(self._numbers)
        self._became: dict[int, int] = {}
        self.made: dict[int, int] = {}
        #: Two units and what they became, by the position of the decision that was about it first, or of the end.
        self.joined: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for position, decision in enumerate(schedule.decisions):
            one, two = decision.one.names, decision.two.names
            for names in (one, two):
                self._join(names, position)
            # What is computed again in a reader leaves both units as they are.
            if is_merge(decision) and one | two not in self._numbers:
                self.made[position] = self._numbers[one | two] = self._fuse(self._numbers[one], self._numbers[two])
        for unit in schedule.units if schedule.decisions else ():
            nodes = unit.nodes if isinstance(unit, Group) else ()
            self._join(frozenset(node.name for node in nodes if node.part_of is not None), len(schedule.decisions))

    def _fuse(self, one: int, two: int) -> int:
        made, self._count = self._count, self._count + 1
        self._became |= {one: made, two: made}
        return made

    def _join(self, names: frozenset[str], position: int) -> None:
        """Give these nodes one unit, if they are not known to be one."""
        if not names or names in self._numbers:
            return
        first, *others = sorted({self._unit_of(name) for name in names})
        for other in others:
            made = self._fuse(first, other)
            self.joined[position].append((first, other, made))
            first = made
        self._numbers[names] = first

    def _unit_of(self, node: str) -> int:
        """The unit that a node is in by now."""
        number = self._numbers[frozenset((node,))]
        while number in self._became:
            number = self._became[number]
        return number

    def of(self, unit: Any) -> int:
        return self._numbers[unit.names]


def describe_decisions(schedule: Schedule, graph: report.Graph, context: Context, growths: Mapping[int, int]) -> None:
    """Fill in the decisions and the rounds of `graph`; `context` has the device and the limits of the schedule,
    `growths` the bytes by which fusions made the peak of memory larger (see `memory/peaks.py`)."""
    numbers = Numbers(schedule, context)
    told = _weightiest(schedule)
    tried = _worth_trying(schedule, told)
    for position, decision in enumerate(schedule.decisions):
        if position in told:
            described = describe_decision(decision, schedule, numbers, numbers.made.get(position))
            if position in growths:
                _tell_growth(described, growths[position])
            if position in tried:
                described.would_fuse_if = would_fuse_if(decision, Pair.of(decision, schedule.graph, context))
            graph.decisions.append(described)
        else:
            pair = (numbers.of(decision.one), numbers.of(decision.two))
            graph.more_decisions.append((*pair, decision.round, decision.reason))
    graph.rounds = _rounds(schedule, numbers)
    graph.pairs_not_asked = not_asked(schedule.units, schedule.decisions)


def _tell_growth(described: report.Decision, growth: int) -> None:
    described.numbers["peak_growth_bytes"] = growth
    described.message += f"; for that, {counted(growth, 'byte')} more must be alive at a time"


def _weightiest(schedule: Schedule) -> set[int]:
    """Positions of the decisions that are told at length."""
    if len(schedule.decisions) <= MOST_DECISIONS:
        return set(range(len(schedule.decisions)))
    told: set[int] = set()
    for is_fused in (True, False):
        positions = [p for p, d in enumerate(schedule.decisions) if isinstance(d.verdict, Fuse) == is_fused]
        told |= set(sorted(positions, key=lambda position: -_stake(position, schedule))[: MOST_DECISIONS // 2])
    return told


def _stake(position: int, schedule: Schedule) -> int:
    """Bytes that a fusion saved, or that a refusal leaves to be moved."""
    decision = schedule.decisions[position]
    if isinstance(decision.verdict, Fuse):
        return decision.verdict.score.bytes_saved
    return schedule.graph.buffers[decision.shared[0]].bytes if decision.shared else 0


def _worth_trying(schedule: Schedule, told: set[int]) -> set[int]:
    """Positions of refusals that lasted, each pair once for a reason."""
    kernel_of = {name: position for position, unit in enumerate(schedule.units) for name in unit.names}
    last: dict[tuple[str, ...], int] = {}
    for position in sorted(told):
        decision = schedule.decisions[position]
        if isinstance(decision.verdict, Fuse) or kernel_of[decision.a] == kernel_of[decision.b]:
            continue
        last[decision.a, decision.b, decision.reason] = position
    return set(sorted(last.values(), key=lambda position: -_stake(position, schedule))[:MOST_TRIED])


def _rounds(schedule: Schedule, numbers: Numbers) -> list[report.Round]:
    rounds: list[report.Round] = []
    units = len(schedule.graph.nodes)
    for position, decision in enumerate(schedule.decisions):
        if not rounds or rounds[-1].number != decision.round:
            rounds.append(report.Round(number=decision.round, units=units))
        fused = list(numbers.joined[position])
        if position in numbers.made:
            fused.append((numbers.of(decision.one), numbers.of(decision.two), numbers.made[position]))
        elif not isinstance(decision.verdict, Fuse):
            rounds[-1].refused += 1
        if position == len(schedule.decisions) - 1:
            fused += numbers.joined[position + 1]
        units -= len(fused)
        rounds[-1].fused += fused
        rounds[-1].units = units
    return rounds


def describe_decision(decision: Decision, schedule: Schedule, numbers: Numbers, makes: int | None) -> report.Decision:
    verdict, names = decision.verdict, decision.names
    shared = decision.shared[0] if decision.shared else None
    sides, same_loops = _sides(decision, numbers)
    return report.Decision(
        a=decision.a,
        b=decision.b,
        round=decision.round,
        kind="vertical" if decision.is_vertical else "horizontal",
        verdict="fused" if isinstance(verdict, Fuse) else "refused",
        reason=decision.reason,
        message=message_of(decision.reason, names),
        numbers={name: _plain(value) for name, value in verdict.numbers.items() if name not in _TOLD_APART},
        score=numbers.scores.of(decision),
        lines=list(decision.lines),
        shared=shared,
        shared_bytes=None if shared is None else schedule.graph.buffers[shared].bytes,
        sides=sides,
        same_loops=same_loops,
        change=_change(decision),
        makes=makes,
    )


#: Numbers of a verdict that have a field of their own in the report.
_TOLD_APART = frozenset(("shared", "written", "read", "bytes_saved", "fused_us", "unfused_us"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Size):
        return value.text
    return value if isinstance(value, int | str | bool | list) else str(value)


def _sides(decision: Decision, numbers: Numbers) -> tuple[list[report.Side], bool]:
    """Both sides, and whether their index expressions are over the same loops, so that they can be compared."""
    units = (decision.one, decision.two)
    sides = [_side(unit, numbers) for unit in units]
    known = decision.verdict.numbers
    if isinstance(known.get("written"), Index) and isinstance(known.get("read"), Index):
        # The refusal has both over the loops that the kernel would have had.
        found = [("writes", known["written"]), ("reads", known["read"])]
        if known["writer"] in decision.two.names:
            found.reverse()
        same_loops = True
    else:
        spots = [_spot(unit, decision) for unit in units]
        if None in spots:
            return sides, False
        found = [spot for spot in spots if spot is not None]
        one, two = units
        same_loops = isinstance(one, Group) and isinstance(two, Group) and one.space == two.space
    for side, (does, index), (_, other) in zip(sides, found, reversed(found), strict=True):
        side.does = "writes" if does == "writes" else "reads"
        side.index = marked(index, other) if same_loops else marked(index, index)
    return sides, same_loops


def _side(unit: Any, numbers: Numbers) -> report.Side:
    if not isinstance(unit, Group):
        return report.Side(unit=numbers.of(unit))
    iterations = unit.space.numel * unit.space.reduction_numel
    return report.Side(unit=numbers.of(unit), space=str(unit.space), iterations=_plain(iterations))


def _spot(unit: Any, decision: Decision) -> tuple[str, Index] | None:
    """Whether the unit writes or reads the shared buffer, and where."""
    found = access_of(unit, decision.shared[0]) if isinstance(unit, Group) and decision.shared else None
    if found is None:
        return None
    return "writes" if found[0] == decision.shared[0] else "reads", found[1].index


def marked(index: Index, other: Index) -> list[report.IndexTerm]:
    """The terms of `index`, those marked that `other` does not have."""
    theirs = frozenset(_pieces(other))
    pieces = list(_pieces(index)) or [Index.number(0)]
    return [
        report.IndexTerm(
            text=_with_sign(str(piece), is_first=position == 0), differs=piece not in theirs and index != other
        )
        for position, piece in enumerate(pieces)
    ]


def _pieces(index: Index) -> Iterable[Index]:
    """The terms, each as an index of its own, the constant last."""
    yield from (Index(0, (term,)) for term in index.terms)
    if index.offset != 0:
        yield Index.number(index.offset)


def _with_sign(text: str, is_first: bool) -> str:
    if is_first:
        return text
    return f" - {text[1:]}" if text.startswith("-") else f" + {text}"


def _change(decision: Decision) -> str:
    """How the loops of the one were given up for those of the other: `x0 = r0, r0 = x0`."""
    verdict = decision.verdict
    if not isinstance(verdict, Fuse):
        return ""
    after = {member.name: member.transform for member in verdict.group.members}
    for unit in (decision.one, decision.two):
        if isinstance(unit, Group):
            member = unit.members[-1]
            transform = after.get(member.name)
            if transform is not None and transform != member.transform and transform.values:
                return str(transform)
    return ""


def describe_all(schedule: Schedule) -> Sequence[report.Decision]:
    """Every decision at length, however many there are."""
    numbers = Numbers(schedule)
    return [describe_decision(d, schedule, numbers, numbers.made.get(p)) for p, d in enumerate(schedule.decisions)]
