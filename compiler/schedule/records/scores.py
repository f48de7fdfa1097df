"""The score of any decision: what fusing was expected to bring, or what a refusal leaves.

A fusion that was weighed keeps the figures by which it was. Where no kernel of both could be made, nothing tells what
it would take; then the score has the bytes that it could save at the most, and what both take apart.
"""

from __future__ import annotations

from compiler import report
from compiler.schedule.cost.kernel import Cost, group_cost, sequence_us
from compiler.schedule.cost.moved import Moved, moved_by
from compiler.schedule.group import Group
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Context, Fuse
from compiler.schedule.scheduler import Schedule
from compiler.schedule.units import Unit


class Scores:
    """Scores of the decisions of one schedule; without a context there is no device to predict for."""

    def __init__(self, schedule: Schedule, context: Context | None) -> None:
        self._layouts = schedule.graph.buffers
        self._context = context
        self._position = {node.name: position for position, node in enumerate(schedule.graph.nodes)}
        self._moved: dict[int, Moved] = {}
        self._costs: dict[Group, Cost] = {}

    def of(self, decision: Decision) -> report.Score:
        verdict = decision.verdict
        known = verdict.numbers
        if isinstance(verdict, Fuse):
            score = verdict.score
            return _score(score.category, score.bytes_saved, score.distance, score.fused_us, score.unfused_us)
        category = "vertical" if decision.is_vertical else "horizontal" if decision.shared else "batch"
        distance = abs(self._first(decision.one) - self._first(decision.two))
        if "fused_us" in known:
            saved = known.get("bytes_saved", known.get("bytes_apart", 0) - known.get("bytes_fused", 0))
            return _score(category, saved, distance, known["fused_us"], known["unfused_us"])
        return _score(category, self.at_stake(decision), distance, None, self._apart_us(decision))

    def at_stake(self, decision: Decision) -> int:
        """The most bytes that one kernel of both could save: what both read is read once, and what the one makes for
        the other alone is neither written nor read."""
        one, two = self._of(decision.one), self._of(decision.two)
        made = decision.one.produced
        saved = 0
        for buffer in decision.shared:
            if buffer in made:
                saved += two.read.get(buffer, 0) + (0 if buffer in decision.needed else one.written.get(buffer, 0))
            else:
                saved += min(one.read.get(buffer, 0), two.read.get(buffer, 0))
        return saved

    def _of(self, unit: Unit) -> Moved:
        # A schedule keeps its units, so that none has the number of another.
        found = self._moved.get(id(unit))
        if found is None:
            found = self._moved[id(unit)] = moved_by(unit, self._layouts)
        return found

    def _apart_us(self, decision: Decision) -> float | None:
        if self._context is None or not isinstance(decision.one, Group) or not isinstance(decision.two, Group):
            return None
        device = self._context.device
        units = (decision.one, decision.two)
        for unit in units:
            if unit not in self._costs:
                self._costs[unit] = group_cost(unit, self._layouts, device)
        return sequence_us([self._costs[unit] for unit in units], device)

    def _first(self, unit: Unit) -> int:
        return min(self._position[name] for name in unit.names)


def _score(category: str, saved: int, distance: int, fused_us: float | None, unfused_us: float | None) -> report.Score:
    return report.Score(
        category=category,
        bytes_saved=saved,
        distance=distance,
        fused_us=None if fused_us is None else round(fused_us, 3),
        unfused_us=None if unfused_us is None else round(unfused_us, 3),
    )
