"""Kernels of two explorations matched by the nodes that they cover.

Of one snippet, nodes go by their names. Of two different ones the names mean nothing, so graphs are taken in order, and
in each the loop nodes are aligned by the operations that they come from, as lines are in a text diff: sizes may differ.
Kernels are then divided into the smallest sets that cover the same nodes in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal, TypeVar

from pydantic import Field

from compiler.report import Graph, Kernel, ReportModel

Number = TypeVar("Number", int, float)
Relation = Literal["same", "split", "merged", "regrouped", "only before", "only after"]

#: What a node of the second exploration is called where the first has no such node: no name of a node holds a space.
_ONLY_AFTER = "only after "


class KernelSum(ReportModel):
    """Kernels of one exploration together. A sum is null if one of its terms is not known."""

    names: list[str] = Field(description="The kernels' names.")
    places: list[int] = Field(default=[], description="Their positions among the graph's kernels, counted from 0.")
    bytes: int = Field(description="Bytes that they read and write, counted from shapes.")
    predicted_us: float | None = Field(default=None, description="Their predicted time in microseconds.")
    measured_us: float | None = Field(default=None, description="Their measured time in microseconds.")


class KernelChange(ReportModel):
    """Kernels that hold the same nodes in both explorations."""

    graph: str = Field(description="The graph's name in the first exploration, or in the second if only that has it.")
    graph_after: str | None = Field(default=None, description="Its name in the second. Null if that lacks it.")
    nodes: list[str] = Field(description="The loop nodes that these kernels hold, by the first exploration's names.")
    relation: Relation = Field(
        default="regrouped", description="What became of the kernels. Merged is fewer kernels, split is more."
    )
    before: KernelSum = Field(description="Their kernels in the first exploration.")
    after: KernelSum = Field(description="Their kernels in the second exploration.")


def matched(before: Sequence[Graph], after: Sequence[Graph], of_one_source: bool) -> list[KernelChange]:
    """Every kernel of both, in the order of the first; nothing of a graph that has no kernels yet."""
    changes: list[KernelChange] = []
    for one, two in _pairs(before, after, of_one_source):
        if one is None or two is None:
            changes += [_alone(one, two, kernel, position) for kernel, position in _kernels_of(one or two)]
        elif one.kernels and two.kernels:
            changes += _of_graphs(one, two, {} if of_one_source else _names_in_first(one, two))
    return changes


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum, to three places; None where a term is not known, or there is none."""
    terms = list(values)
    known = [term for term in terms if term is not None]
    return round(sum(known), 3) if terms and len(known) == len(terms) else None


def _pairs(
    before: Sequence[Graph], after: Sequence[Graph], of_one_source: bool
) -> Iterator[tuple[Graph | None, Graph | None]]:
    """Graphs that are held against each other. Of one source, a graph that one of them lacks was not captured in time:
    that is no change of kernels."""
    if not of_one_source:
        yield from zip_longest(before, after)
        return
    later = {graph.name: graph for graph in after}
    yield from ((graph, later[graph.name]) for graph in before if graph.name in later)


def _kernels_of(graph: Graph | None) -> list[tuple[Kernel, int]]:
    return [(kernel, position) for position, kernel in enumerate(graph.kernels)] if graph is not None else []


def _alone(one: Graph | None, two: Graph | None, kernel: Kernel, position: int) -> KernelChange:
    graph = one or two
    assert graph is not None
    held, nothing = _sum([(kernel, position)]), _sum([])
    return KernelChange(
        graph=graph.name,
        graph_after=None if two is None else two.name,
        nodes=list(kernel.nodes),
        relation="only before" if two is None else "only after",
        before=nothing if one is None else held,
        after=nothing if two is None else held,
    )


def _names_in_first(one: Graph, two: Graph) -> dict[str, str]:
    """What each loop node of `two` is called in `one`: the two lists are aligned by what their nodes compute."""
    firsts, seconds = _signatures(one), _signatures(two)
    names = {name: _ONLY_AFTER + name for name, _ in seconds}
    matcher = SequenceMatcher(None, [what for _, what in firsts], [what for _, what in seconds], autojunk=False)
    for first, second, length in matcher.get_matching_blocks():
        for step in range(length):
            names[seconds[second + step][0]] = firsts[first + step][0]
    return _without_chance(names, one, two)


def _without_chance(names: dict[str, str], one: Graph, two: Graph) -> dict[str, str]:
    """Kernels that share less than half of the nodes of the smaller one have a sum or a product in common, as any two
    may. These nodes are then matched with nothing."""
    kept = dict(names)
    position_of = {node: position for position, kernel in enumerate(one.kernels) for node in kernel.nodes}
    for second in two.kernels:
        shared: dict[int, list[str]] = {}
        for node in second.nodes:
            if (position := position_of.get(names.get(node, ""))) is not None:
                shared.setdefault(position, []).append(node)
        for position, nodes in shared.items():
            if 2 * len(nodes) < min(len(one.kernels[position].nodes), len(second.nodes)):
                kept.update((node, _ONLY_AFTER + node) for node in nodes)
    return kept


def _signatures(graph: Graph) -> list[tuple[str, tuple[str, ...]]]:
    """Each loop node with its kind and the operations that it comes from."""
    targets = {node.name: node.target for node in graph.aten}
    return [
        (loop.name, (loop.kind, *(targets.get(origin, "") for origin in loop.origins)))
        for loop in graph.loops
        if not loop.dead
    ]


def _of_graphs(one: Graph, two: Graph, names: Mapping[str, str]) -> list[KernelChange]:
    """The smallest sets of nodes that whole kernels of both hold."""
    befores, afters = _kernels_of(one), _kernels_of(two)
    held_before = [set(kernel.nodes) for kernel, _ in befores]
    held_after = [{names.get(node, node) for node in kernel.nodes} for kernel, _ in afters]
    return [
        KernelChange(
            graph=one.name,
            graph_after=two.name,
            nodes=[
                n for kernel, _ in ([befores[i] for i in firsts] or [afters[i] for i in seconds]) for n in kernel.nodes
            ],
            relation=relation_of([held_before[i] for i in firsts], [held_after[i] for i in seconds]),
            before=_sum([befores[i] for i in firsts]),
            after=_sum([afters[i] for i in seconds]),
        )
        for firsts, seconds in partition(held_before, held_after)
    ]


def partition(before: Sequence[Set[str]], after: Sequence[Set[str]]) -> list[tuple[list[int], list[int]]]:
    """The smallest sets of nodes that whole kernels of both hold: the positions of the kernels of each. `before` and
    `after` are the nodes of each kernel."""
    together: dict[str, set[str]] = {}
    for held in (*before, *after):
        met = {id(nodes): nodes for node in held if (nodes := together.get(node)) is not None}
        # The smaller ones are taken into the largest, so that no node moves often.
        largest = max(met.values(), key=len, default=set[str]())
        for nodes in (set(held), *met.values()):
            if nodes is not largest:
                largest |= nodes
                together.update(dict.fromkeys(nodes, largest))
    found: dict[int, tuple[list[int], list[int]]] = {id(nodes): ([], []) for nodes in together.values()}
    for side, kernels in enumerate((before, after)):
        for position, held in enumerate(kernels):
            for node in held:
                found[id(together[node])][side].append(position)
                break
    return list(found.values())


def relation_of(before: Sequence[Set[str]], after: Sequence[Set[str]]) -> Relation:
    """What became of kernels that hold these nodes."""
    if not after:
        return "only before"
    if not before:
        return "only after"
    if Counter(map(frozenset, before)) == Counter(map(frozenset, after)):
        return "same"
    if len(before) == len(after):
        return "regrouped"
    return "split" if len(before) < len(after) else "merged"


def _sum(kernels: list[tuple[Kernel, int]]) -> KernelSum:
    return KernelSum(
        names=[kernel.name for kernel, _ in kernels],
        places=[position for _, position in kernels],
        bytes=sum(kernel.bytes for kernel, _ in kernels),
        predicted_us=total(kernel.predicted_us for kernel, _ in kernels),
        measured_us=total(kernel.measured_us for kernel, _ in kernels),
    )
