"""Find the fusions that raise peak memory above that of the graph without fusion.

A fused kernel may take a result early, or hold two for a reader that took one after the other. Time is what fusions are
chosen by, so such a one is taken nonetheless, but it says so. Only where the whole schedule needs more than its nodes
alone do, the fusions that did it are looked for: the schedule is played back, with an order and a plan of memory for
what it was after some of its fusions; between two such points the middle is looked at, where the later one needs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from compiler.schedule.memory.order import in_order
from compiler.schedule.memory.plan import MemoryPlan, plan_memory
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Fuse
from compiler.schedule.scheduler import Schedule, without_fusion
from compiler.schedule.units import Unit

#: Nodes of the graph times the points that are looked at: in larger graphs not every fusion is found.
MOST_WORK = 20_000


def peak_growths(schedule: Schedule, plan: MemoryPlan) -> dict[int, int]:
    """By the positions of decisions, the bytes by which each of these fusions made the peak larger."""
    alone = plan_memory(without_fusion(schedule), plan.written_back).peak_bytes
    if plan.peak_bytes <= alone:
        return {}
    fusions = [position for position, decision in enumerate(schedule.decisions) if is_merge(decision)]
    left = MOST_WORK // max(len(schedule.graph.nodes), 1)
    found: dict[int, int] = {}

    @cache
    def peak_after(count: int) -> int:
        if count in (0, len(fusions)):
            return plan.peak_bytes if count else alone
        units = in_order(units_after(schedule, fusions[count - 1]), schedule.graph)
        return plan_memory(replace(schedule, units=tuple(units)), plan.written_back).peak_bytes

    open_ = [(0, len(fusions))]
    while open_ and left > 0:
        first, last = open_.pop()
        growth = peak_after(last) - peak_after(first)
        if growth <= 0:
            continue
        if last - first == 1:
            found[fusions[first]] = growth
            continue
        middle, left = (first + last) // 2, left - 1
        open_ += [(middle, last), (first, middle)]
    return found


def is_merge(decision: Decision) -> bool:
    """Whether two units became one."""
    verdict = decision.verdict
    return isinstance(verdict, Fuse) and len(verdict.group.members) > max(
        len(decision.one.nodes), len(decision.two.nodes)
    )


def units_after(schedule: Schedule, position: int) -> Sequence[Unit]:
    """The units that there were after the decision at `position`."""
    units = {unit.names: unit for unit in without_fusion(schedule).units}
    for decision in schedule.decisions[: position + 1]:
        for unit in (decision.one, decision.two):
            if unit.names not in units:
                if not is_merge(decision):
                    continue
                # No fusion made it: it is several parts of a concatenation, which were split off as one kernel.
                for names in [names for names in units if not names.isdisjoint(unit.names)]:
                    del units[names]
            units[unit.names] = unit
        if isinstance(decision.verdict, Fuse):
            group = decision.verdict.group
            if is_merge(decision):
                del units[decision.one.names], units[decision.two.names]
            units[group.names] = group
    return list(units.values())
