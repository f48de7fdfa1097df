"""Pairs of kernels that have the same loops and share no tensor.

One kernel of both would move as many bytes as two, so the search does not ask about them; all that could be saved is a
launch. They are as many as the square of the graph, so each kernel is asked about with the `NEAREST` before it that run
over as many iterations, in the order in which they run, when everything else is done; `not_asked` counts the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from compiler.decisions import Refuse
from compiler.ir.size import Integer
from compiler.schedule.group import Group
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Context, shared_buffers
from compiler.schedule.rules.batch import side_by_side
from compiler.schedule.units import Unit

#: Kernels over the same loops that a kernel is asked about with.
NEAREST = 8

Loops = tuple[Integer, Integer]


def refuse_what_is_alike(
    context: Context, ordered: Sequence[Unit], known: Iterable[Decision], answer: Callable[[int, int, Refuse], None]
) -> None:
    """Why the units in `ordered` that run over the same loops are not one kernel: `answer` gets each refusal, but of
    pairs that share a tensor or are among the decisions `known`."""
    asked = _pairs_of(known)
    before: defaultdict[Loops, list[Group]] = defaultdict(list)
    for unit in ordered:
        if not isinstance(unit, Group):
            continue
        alike = before[_loops_of(unit)]
        for other in reversed(alike[-NEAREST:]):
            if _pair(other, unit) in asked or shared_buffers(other, unit, context.graph.layouts)[0]:
                continue
            a, b = context.graph.number_of(other), context.graph.number_of(unit)
            verdict = side_by_side(a, b, context)
            # What could share a launch stands further apart than launches are looked for: nobody asked.
            if isinstance(verdict, Refuse):
                answer(a, b, verdict)
        alike.append(unit)


def not_asked(units: Iterable[Unit], decisions: Iterable[Decision]) -> int:
    """How many pairs of these units run over as many iterations and have no decision."""
    loops = {unit.names: _loops_of(unit) for unit in units if isinstance(unit, Group)}
    pairs = sum(count * (count - 1) // 2 for count in Counter(loops.values()).values())
    decided = (tuple(pair) for pair in _pairs_of(decisions) if len(pair) == 2)
    return pairs - sum(one in loops and loops[one] == loops.get(two) for one, two in decided)


def _loops_of(group: Group) -> Loops:
    return group.space.numel, group.space.reduction_numel


def _pair(one: Unit, two: Unit) -> frozenset[frozenset[str]]:
    return frozenset((one.names, two.names))


def _pairs_of(decisions: Iterable[Decision]) -> set[frozenset[frozenset[str]]]:
    return {_pair(decision.one, decision.two) for decision in decisions}
