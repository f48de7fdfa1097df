"""The order of units, kept as bit sets through fusions, is what a search through the graph finds."""

from __future__ import annotations

import random

import pytest
import torch

from compiler.ir.body import trace
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import GraphOutput, Layout, LoopGraph, LoopNode
from compiler.ir.ops import ops
from compiler.schedule.group import Group, Member, Space
from compiler.schedule.inline import _least_length, compose
from compiler.schedule.units import NEAREST, UnitGraph

LAYOUT = Layout((8,), (1,), torch.float32)


def chain_of_sums(generator: random.Random, count: int) -> LoopGraph:
    """Nodes that each add up to three of the nodes before them."""
    graph = LoopGraph(buffers={"x": LAYOUT}, inputs=["x"])
    for number in range(count):
        before = ["x", *(node.name for node in graph.nodes)][-6:]
        graph.nodes.append(_sum(f"n{number}", generator.sample(before, min(len(before), generator.randint(1, 3)))))
        graph.buffers[f"n{number}"] = LAYOUT
    graph.outputs = [GraphOutput(f"n{count - 1}", LAYOUT)]
    return graph


def _sum(name: str, read: list[str]) -> LoopNode:
    dim = Dim("x0", 8)

    def body() -> None:
        total = ops.load(read[0], Index.of(dim), torch.float32)
        for other in read[1:]:
            total = ops.add(total, ops.load(other, Index.of(dim), torch.float32))
        ops.store(name, Index.of(dim), total)

    return LoopNode(name, LAYOUT, (dim,), (), trace(body))


def reached(graph: UnitGraph, start: int) -> set[int]:
    """Units that must run before `start`, by a search."""
    found: set[int] = set()
    ahead = [start]
    while ahead:
        unit = graph.units[ahead.pop()]
        makers = {graph.producer[b] for b in unit.read_buffers if b in graph.producer} - {start}
        ahead += makers - found
        found |= makers
    return found


@pytest.mark.parametrize("seed", range(5))
def test_order_survives_fusions(seed: int) -> None:
    generator = random.Random(seed)
    graph = UnitGraph(chain_of_sums(generator, 24))
    while len(graph.units) > 2:
        before = {number: reached(graph, number) for number in graph.units}
        for a in graph.units:
            for b in graph.units:
                assert graph.must_precede(a, b) == (a in before[b])
                third = graph.between(a, b)
                among = {unit for unit in before[b] if a in before[unit]}
                assert third in among if among else third is None
        legal = [(a, b) for b in graph.units for a in graph.units if a != b and b not in before[a]]
        legal = [(a, b) for a, b in legal if graph.between(a, b) is None]
        a, b = generator.choice(legal)
        one, two = graph.units[a], graph.units[b]
        assert isinstance(one, Group) and isinstance(two, Group)
        members = (*one.members, *two.members)
        graph.merge(a, b, Group("both", one.space, members, frozenset(m.name for m in members)))


def test_a_reader_that_computes_a_value_again_comes_before_the_kernel_that_its_maker_went_into() -> None:
    graph = LoopGraph(buffers=dict.fromkeys(["x", "made", "again", "next", "last"], LAYOUT), inputs=["x"])
    made, again = _sum("made", ["x"]), _sum("again", ["made"])
    graph.nodes = [made, again, _sum("next", ["again"]), last := _sum("last", ["made", "next"])]
    units = UnitGraph(graph)
    reader, maker = (
        Group(node.name, Space(node.x_dims), (Member(made, made.body), Member(node, node.body)), frozenset({node.name}))
        for node in (again, last)
    )
    units.replace(1, reader)
    merged = units.merge(0, 3, maker)
    units.order_anew()
    for number in units.units:
        for other in units.units:
            assert units.must_precede(number, other) == (number in reached(units, other)), (number, other)
    assert units.between(1, merged) == 2


def test_of_many_readers_the_nearest_are_neighbours() -> None:
    graph = LoopGraph(buffers={"x": LAYOUT}, inputs=["x"])
    for number in range(4 * NEAREST):
        graph.nodes.append(_sum(f"n{number}", ["x"]))
        graph.buffers[f"n{number}"] = LAYOUT
    units = UnitGraph(graph)
    for number in (0, 7, 2 * NEAREST, 4 * NEAREST - 1):
        found = {other for _, other in units.neighbours([number])}
        distances = sorted(abs(other - number) for other in units.units if other != number)
        assert sorted(abs(other - number) for other in found) == distances[: NEAREST - 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_length_of_a_composition_is_known_before_it_is_composed(seed: int) -> None:
    graph = chain_of_sums(random.Random(seed), 9)
    nodes = [node for node in graph.nodes if isinstance(node, LoopNode)]
    members = tuple(Member(node, node.body) for node in nodes)
    group = Group("all", Space(nodes[0].x_dims), members, frozenset({"n8"}))
    bodies = {member.name: member.body for member in members}
    composed = compose(group, "n8")
    assert composed is not None
    assert _least_length(bodies["n8"], group, bodies) == len(composed.instructions)


def test_a_composition_that_would_be_too_long_is_none() -> None:
    nodes = [_sum("n0", ["x"])]
    for number in range(1, 12):
        before = nodes[-1].name
        nodes.append(_square(f"n{number}", before))
    group = Group("all", Space(nodes[0].x_dims), tuple(Member(n, n.body) for n in nodes), frozenset({"n11"}))
    assert compose(group, "n11") is None
    assert compose(group, "n4") is not None


def _square(name: str, read: str) -> LoopNode:
    """Reads two elements of what it reads, so that each step doubles what composing makes of it."""
    dim = Dim("x0", 8)

    def body() -> None:
        one = ops.load(read, Index.of(dim), torch.float32)
        two = ops.load(read, Index.of(dim) // 2, torch.float32)
        ops.store(name, Index.of(dim), ops.mul(one, two))

    return LoopNode(name, LAYOUT, (dim,), (), trace(body))
