"""Stepping through the scheduler's rounds: the groups after each, told from a report alone."""

from __future__ import annotations

from compiler.report import Graph

#: Names that all units together may hold: those of one chain of 4,000 nodes are 8 million.
MOST_HELD = 10_000_000


def units_after(graph: Graph, round: int | None = None) -> dict[int, tuple[str, ...]]:
    """The units after round number `round` (0: before the first; None: after the last), each with its nodes' names.

    Units are numbered as in `Graph.rounds`: nodes that are not dead in order from 0, then what each fusion makes. After
    the last round the units are the kernels and library calls, but that what leads to a part of a concatenation is
    still in the unit of the whole."""
    alive = [loop.name for loop in graph.loops if not loop.dead]
    units: dict[int, tuple[str, ...]] = {number: (name,) for number, name in enumerate(alive)}
    for step in graph.rounds:
        if round is not None and step.number > round:
            break
        for a, b, made in step.fused:
            units[made] = (*units.pop(a), *units.pop(b))
    return units


def every_unit(graph: Graph) -> dict[int, tuple[str, ...]]:
    """The nodes of every unit that there ever was, by its number.

    Raises `ValueError` for rounds that no scheduler made: a unit that fuses with itself would double each time."""
    alive = [loop.name for loop in graph.loops if not loop.dead]
    units: dict[int, tuple[str, ...]] = {number: (name,) for number, name in enumerate(alive)}
    held = len(units)
    for step in graph.rounds:
        for a, b, made in step.fused:
            held += len(units[a]) + len(units[b])
            if held > MOST_HELD or len(units[a]) + len(units[b]) > len(alive):
                raise ValueError(
                    f"Round {step.number} of graph {graph.name} makes a unit of more nodes than there are."
                )
            units[made] = (*units[a], *units[b])
    return units
