"""Which kernels stayed apart and why: the many refusals of their nodes, told once for each pair of kernels."""

from __future__ import annotations

from itertools import product

from compiler.report import Decision, Graph, Refusal


def refusals_of(graph: Graph) -> list[Refusal]:
    """Each two kernels of which nodes were refused, those with most bytes at stake first. A pair of nodes that came
    together in a later round, or that one kernel computes again, is none."""
    homes: dict[str, set[int]] = {}
    for position, kernel in enumerate(graph.kernels):
        for node in kernel.nodes:
            homes.setdefault(node, set()).add(position)
    sizes = _sizes(graph)
    found: dict[tuple[int, int], dict[frozenset[str], tuple[bool, int, int]]] = {}
    for number, decision in enumerate(graph.decisions):
        ones, twos = (homes.get(node, set()) for node in (decision.a, decision.b))
        if decision.verdict == "fused" or not ones.isdisjoint(twos):
            continue
        # The search goes on until it has asked about the two kernels as they are in the end.
        nodes = sum(sizes.get(side.unit, 1) for side in decision.sides)
        weight = (not decision.reason.endswith(".recompute"), nodes, number)
        for one, two in product(ones, twos):
            pairs = found.setdefault((min(one, two), max(one, two)), {})
            names = frozenset((decision.a, decision.b))
            pairs[names] = max(weight, pairs.get(names, weight))
    told = []
    for kernels, pairs in found.items():
        numbers = [number for _, _, number in sorted(pairs.values(), reverse=True)]
        told.append(Refusal(kernels=kernels, decisions=numbers, bytes=at_stake(graph.decisions[numbers[0]])))
    return sorted(told, key=lambda refusal: -refusal.bytes)


def _sizes(graph: Graph) -> dict[int, int]:
    """How many nodes each unit has that a fusion made."""
    sizes: dict[int, int] = {}
    for turn in graph.rounds:
        for one, two, made in turn.fused:
            sizes[made] = sizes.get(one, 1) + sizes.get(two, 1)
    return sizes


def at_stake(decision: Decision) -> int:
    """Bytes that were saved, or were to be saved as far as is known."""
    saved = decision.score.bytes_saved if decision.score is not None else None
    return saved or decision.shared_bytes or 0
