"""Fuse matrix products that share their left operand into one kernel, which reads that operand once.

    gate = x @ w1;  up = x @ w2;  y = silu(gate) * up     ->    each tile of x: two sums;  y, and neither gate nor up
    q = x @ wq;  k = x @ wk;  v = x @ wv                  ->    each tile of x: three sums, stored

A kernel of our own takes the place of as many library calls. Where loops need all of the results at one point, they can
follow on the sums, so they are reckoned with when it is decided: what the library's calls and those loops take is held
against one kernel of everything. They join it next, as its epilogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.decisions import Refuse
from compiler.ir.nodes import ExternNode, TensorArgument
from compiler.schedule.cost.kernel import sequence_us
from compiler.schedule.group import Group
from compiler.schedule.products.best_tile import tile_of
from compiler.schedule.products.loops import Product, left_operand, with_another
from compiler.schedule.rules.batch import MOST_EARLY
from compiler.schedule.rules.products import (
    LEAST_GAIN_OF_DESCRIBED,
    as_ours,
    cost_of,
    is_call,
    least_gain,
    name_of,
    with_epilogue,
)
from compiler.schedule.rules.verdicts import Context, Fuse, third_between
from compiler.schedule.units import Unit

KIND = "shared_operand"
#: Products of one kernel. Each has a sum for every point of a tile, and tiles get smaller as sums get more.
MOST_PRODUCTS = 4
#: Microseconds that one more kernel of a product takes beyond what the model of a product has: until its first tiles
#: are there, and for each 64 of k. Three of 197 x 768 x 768 take 20 us by the library and 11 in one kernel, where the
#: model has 12 and 7; a gate of 32 rows, 11008 x 4096, takes 66 and 59, where it has 52 and 50.
FIRST_TILES_US, STEP_US = 1.0, 0.1
#: Products that stand further apart, counted in nodes, are one kernel only where their results are small.
NEAREST = 16


def may_share(one: Unit, two: Unit, context: Context) -> bool:
    """Whether two units are products of one left operand, so that it is worth asking about them."""
    if not is_call(one) or not is_call(two) or context.device.kind != "cuda":
        return False
    left = _left_of(one)
    return left is not None and left == _left_of(two)


def _left_of(unit: Unit) -> TensorArgument | None:
    call = unit.call if isinstance(unit, Product) else unit
    return left_operand(call) if isinstance(call, ExternNode) else None


def share_operand(a: int, b: int, context: Context) -> Fuse | Refuse:
    """The verdict on two units that `may_share` names."""
    graph = context.graph
    a, b = sorted((a, b), key=graph.first_position)
    one, two = graph.units[a], graph.units[b]
    first, second = as_ours(one, context), as_ours(two, context)
    intermediate = third_between(a, b, graph)
    if intermediate is not None:
        return intermediate
    joined = with_another(first, second) if first is not None and second is not None else None
    # The one may also be the other's right operand.
    if joined is None or graph.must_precede(a, b) or graph.must_precede(b, a):
        return Refuse("kind.extern", {"extern": name_of(two)})
    if KIND in context.disabled:
        return Refuse("policy.disabled", {"knob": KIND})
    for nodes, limit in ((len(joined.members), context.limits.most_nodes), (joined.matrices.count, MOST_PRODUCTS)):
        if nodes > limit:
            return Refuse("policy.group_size", {"nodes": nodes, "limit": limit})
    return _made_early(a, b, joined, context) or _weigh(a, b, joined, context)


def _made_early(first: int, later: int, joined: Product, context: Context) -> Refuse | None:
    """Whether a large result would be made long before the position where it stands, and be kept until then: the keys
    of every layer of a decoder, say, which all come from one tensor."""
    graph = context.graph
    apart = graph.first_position(later) - graph.first_position(first)
    size = sum(call.outputs[0][1].bytes for call in joined.beside if call.outputs[0] is not None)
    if apart <= NEAREST or size <= MOST_EARLY:
        return None
    return Refuse("profit.kept_longer", {"early": name_of(graph.units[later]), "bytes": size, "limit": MOST_EARLY})


def _weigh(a: int, b: int, joined: Product, context: Context) -> Fuse | Refuse:
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    apart, whole = [cost_of(one, context), cost_of(two, context)], joined
    for reader, with_reader in _with_what_needs_all(joined, {a, b}, context):
        apart.append(context.cost(reader))
        whole = with_reader
    together = context.cost(whole)
    unfused_us = sequence_us(apart, context.device)
    if context.measure is None:
        unfused_us += FIRST_TILES_US + STEP_US * joined.matrices.sizes[3] / 64
    is_forced = context.directives.forces(one, two)
    score, numbers = context.score(KIND, a, b, apart, together, unfused_us, is_forced=is_forced)
    least = least_gain(context)
    if tile_of(whole, context.device).by_descriptors:
        least = min(least, LEAST_GAIN_OF_DESCRIBED)
    left = _left_of(joined)
    assert left is not None
    numbers |= {
        "call": " and ".join(call.name for call in joined.calls),
        "shared": left.buffer,
        "products": joined.matrices.count,
        "library_us": sequence_us(apart[:2], context.device),
        "least_gain": least,
        "space": str(joined.space),
    }
    if not is_forced and together.microseconds > unfused_us * (1 - least):
        return Refuse("profit.library", numbers)
    return Fuse.into(f"fused.{KIND}", joined, score, numbers)


def _with_what_needs_all(joined: Product, inside: set[int], context: Context) -> Iterator[tuple[Group, Product]]:
    """The loops that need every one of the products, and the kernel with them; nothing where there are none, or where
    they cannot follow on the sums."""
    graph = context.graph
    made = [call.name for call in joined.calls]
    readers = set.intersection(*(graph.readers[name] for name in made)) - inside
    for number in sorted(readers)[:1]:
        reader = graph.units[number]
        if is_call(reader) or not isinstance(reader, Group) or not _runs_next(number, inside, context):
            continue
        found = with_epilogue(joined, reader, made)
        if isinstance(found, Product):
            yield reader, replace(found, stored=graph.escaping(found.produced, {*inside, number}))


def _runs_next(number: int, inside: set[int], context: Context) -> bool:
    """Whether the unit can run directly after the products."""
    return all(third_between(product, number, context.graph) is None for product in inside)
