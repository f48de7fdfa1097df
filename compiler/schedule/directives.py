"""User directives: pairs of nodes that belong in one kernel, or in two.

A directive is policy and no more: a forced fusion passes the test of whether it pays, and no other one. Names are
turned into nodes once, before scheduling; the rules then ask about two units, whatever each is made of by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from compiler.ir.nodes import LoopGraph
from compiler.options import NodePair, Options
from compiler.schedule.group import Group
from compiler.schedule.units import Unit

#: Which nodes a name stands for that is neither a node's own nor that of an ATen node: see `nodes_by_name`.
OtherNames = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Directives:
    """Pairs of loop nodes, by their names."""

    forced: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()

    @cached_property
    def _partners(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        return _partners_in(self.forced), _partners_in(self.forbidden)

    def forces(self, one: Unit, two: Unit) -> bool:
        """Whether a node of the one and a node of the other are to be in one kernel."""
        return bool(self.forced) and _pair_between(self._partners[0], one.produced, two.produced) is not None

    def are_about(self, unit: Unit) -> bool:
        """Whether a node of the unit is one of a pair."""
        return any(name in partners for partners in self._partners for name in unit.produced)

    def forbidden_between(self, one: Unit, two: Unit) -> tuple[str, str] | None:
        """A node of the one and a node of the other that are to be in two kernels, if there are any. What a unit
        computes again is a node of it too: no value is computed again in the kernel of one that it is to be apart from.
        """
        if not self.forbidden:
            return None
        return _pair_between(self._partners[1], _with_computed_again(one), _with_computed_again(two))


NO_DIRECTIVES = Directives()


def _partners_in(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    partners: dict[str, set[str]] = {}
    for a, b in pairs:
        partners.setdefault(a, set()).add(b)
        partners.setdefault(b, set()).add(a)
    return partners


def _pair_between(partners: dict[str, set[str]], mine: Set[str], theirs: Set[str]) -> tuple[str, str] | None:
    found = ((a, b) for a in sorted(mine & partners.keys()) for b in sorted(partners[a] & theirs))
    return next(found, None)


def _with_computed_again(unit: Unit) -> frozenset[str]:
    return unit.produced.union(unit.computed) if isinstance(unit, Group) else frozenset(unit.produced)


def nodes_by_name(graph: LoopGraph, other_names: OtherNames) -> dict[str, tuple[str, ...]]:
    """The nodes that each name stands for: a node's own, that of an ATen node for the loops that it became, and
    `other_names`, of Dynamo's graph and of kernels, which a graph of loops does not know."""
    found: dict[str, list[str]] = {}
    for node in graph.nodes:
        for origin in node.origins:
            found.setdefault(origin, []).append(node.name)
    alive = {node.name for node in graph.nodes}
    named = {name: tuple(node for node in nodes if node in alive) for name, nodes in other_names.items()}
    named |= {name: tuple(nodes) for name, nodes in found.items()}
    return named | {name: (name,) for name in alive}


def directives_of(graph: LoopGraph, options: Options, other_names: OtherNames) -> Directives:
    """The directives of `options` as pairs of nodes. A name that the graph does not have is left out."""
    if not options.force and not options.forbid:
        return NO_DIRECTIVES
    nodes = nodes_by_name(graph, other_names)
    return Directives(_pairs(options.force, nodes), _pairs(options.forbid, nodes))


def _pairs(asked: Sequence[NodePair], nodes: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    pairs = (pair for a, b in asked for pair in product(nodes.get(a, ()), nodes.get(b, ())))
    return tuple(dict.fromkeys((a, b) for a, b in pairs if a != b))
