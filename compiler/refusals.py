"""The refusals of a report that cost most: pairs that ended in two kernels, by the bytes at stake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.report import Decision, Graph


@dataclass(frozen=True)
class Refusal:
    """The last refusal of a pair. `bytes` were to be saved by fusing it, as far as is known."""

    graph: str
    decision: Decision
    bytes: int


def costliest(graphs: Sequence[Graph], most: int) -> list[Refusal]:
    """At most so many of them, those with most bytes at stake first. A pair that was refused in one round and came
    together in a later one is no refusal."""
    last: dict[tuple[str, frozenset[str]], Refusal] = {}
    for graph in graphs:
        homes: dict[str, set[int]] = {}
        for place, kernel in enumerate(graph.kernels):
            for node in kernel.nodes:
                homes.setdefault(node, set()).add(place)
        for decision in graph.decisions:
            one, two = (homes.get(node, set()) for node in (decision.a, decision.b))
            if decision.verdict == "refused" and one.isdisjoint(two):
                pair = graph.name, frozenset((decision.a, decision.b))
                last[pair] = Refusal(graph.name, decision, _at_stake(decision))
    return sorted(last.values(), key=lambda refusal: -refusal.bytes)[:most]


def _at_stake(decision: Decision) -> int:
    saved = decision.score.bytes_saved if decision.score is not None else None
    return saved or decision.shared_bytes or 0
