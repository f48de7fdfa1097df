"""Make the fusions that the user forces, before and after those that the scheduler chooses.

While it works, a forced pair passes the test of profit and comes first. But it does not ask about all pairs: readers of
one tensor that stand far apart are asked about here, before. What is still apart when nothing else fuses is asked about
after: nodes that share nothing may run side by side in one launch, and a pair that no rule allows leaves its refusal.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.decisions import Refuse
from compiler.ir.nodes import ExternNode
from compiler.schedule.rules import Context, Fuse, can_fuse, shared_buffers
from compiler.schedule.rules.batch import side_by_side

Answer = Callable[[int, int, Fuse | Refuse], None]


def fuse_forced_first(context: Context, answer: Answer) -> None:
    """Merge the forced pairs that share a buffer, where that is legal as they are; `answer` gets each fusion."""
    for a, b in context.directives.forced:
        units = _units_of(a, b, context)
        if units is not None and _share(*units, context):
            verdict = can_fuse(*units, context)
            if isinstance(verdict, Fuse):
                _settle(units, verdict, context, answer)


def fuse_forced_last(context: Context, answer: Answer) -> None:
    """Merge the forced pairs that are still apart, where that is legal; `answer` gets the verdict on each of them."""
    sharing_nothing = []
    for a, b in context.directives.forced:
        units = _units_of(a, b, context)
        if units is not None and _share(*units, context):
            _settle(units, can_fuse(*units, context), context, answer)
        else:
            sharing_nothing.append((a, b))
    # A launch of parts is fused with nothing more, so pairs that need one come last.
    for a, b in sharing_nothing:
        units = _units_of(a, b, context)
        if units is not None:
            _settle(units, side_by_side(*units, context, is_forced=True), context, answer)


def _settle(units: tuple[int, int], verdict: Fuse | Refuse, context: Context, answer: Answer) -> None:
    answer(*units, verdict)
    if isinstance(verdict, Fuse):
        context.graph.merge(*units, verdict.group)


def _units_of(a: str, b: str, context: Context) -> tuple[int, int] | None:
    """The units that two nodes are in, the one that must run first in front; None where they are one or one is dead."""
    one, two = _unit_of(a, context), _unit_of(b, context)
    if one is None or two is None or one == two:
        return None
    return (two, one) if context.graph.must_precede(two, one) else (one, two)


def _unit_of(node: str, context: Context) -> int | None:
    """The unit that a node is in; None for a dead one. A loop is named as its buffer, a library call may not be."""
    graph = context.graph
    calls = ((number, unit) for number, unit in graph.units.items() if isinstance(unit, ExternNode))
    found = graph.producer.get(node)
    return found if found is not None else next((number for number, unit in calls if unit.name == node), None)


def _share(one: int, two: int, context: Context) -> bool:
    graph = context.graph
    return bool(shared_buffers(graph.units[one], graph.units[two], graph.layouts)[0])
