"""One verdict for all pairs of groups that differ in names alone.

    add_1, relu_1 of one layer     ->     asked of the rules, weighed, kept
    add_7, relu_7 of the next      ->     the same answer, with these names

The layers of a model repeat each other: of the 4,088 pairs of loops that are asked about while a BEiT is scheduled, 331
differ in more than names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from compiler.schedule.group import Group
from compiler.schedule.records.choices import are_observed
from compiler.schedule.rules.verdicts import Context


class Pair(NamedTuple):
    """All that a verdict on a pair depends on: a key without names, and the names in the order in which they occur."""

    form: Hashable
    names: tuple[str, ...]


def pair_of(a: int, b: int, shared: Sequence[str], context: Context) -> Pair | None:
    """The pair of the units `a` and `b`, which touch the buffers `shared`, in the order in which they are looked at.
    None where names or more than the two groups count: for a user's directive, what is filled part by part or in
    place, what waits for what it does not read; and where somebody wants to see each choice weighed."""
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    if context.directives.forced or are_observed() or not isinstance(one, Group) or not isinstance(two, Group):
        return None
    for group in (one, two):
        if group.updated or group.follows or group.has_check or not graph.parts.keys().isdisjoint(group.produced):
            return None
    first, second = context.form(one), context.form(two)
    names = tuple(dict.fromkeys((*first.names, *second.names)))
    positions = {name: position for position, name in enumerate(names)}
    needed = graph.escaping((*one.produced, *two.produced), {a, b})
    # Rules take results, and what is read, in the order of their names.
    ordered = [*shared, *sorted(one.stored), *(sorted(one.read_buffers) if one.space.r and not two.space.r else ())]
    form = (
        first.number,
        second.number,
        tuple([positions[name] for name in second.names]),
        tuple([positions[name] for name in ordered]),
        frozenset([positions[name] for name in needed]),
    )
    return Pair(form, names)
