"""Many small kernels in one launch.

    launch 1   for i: a(i)
    launch 2   for j: b(j)        ->        launch   program < n: a's loops;  otherwise: b's loops

Unlike the other rules this one brings no loops together: each part keeps its own, and some of the programs. So the
parts need share nothing, and must not depend on each other. It comes last, when nothing else fuses, and spares a launch
where that is a good part of what a kernel costs: for pointwise kernels, and for reductions that take no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.decisions import Refuse
from compiler.ir.nodes import ExternNode
from compiler.ir.size import hint
from compiler.schedule.group import Batch, Group, parts_of
from compiler.schedule.legality import streams_differ
from compiler.schedule.memory.lifetimes import lifetimes, live_bytes
from compiler.schedule.names import fused_name
from compiler.schedule.products.loops import Product
from compiler.schedule.rules.verdicts import Context, Fuse, third_between, unless_forbidden
from compiler.schedule.units import Unit

REASON = "fused.batch"
#: Units, in the order in which they would run, that a later one may join: it runs that much earlier, and its result
#: is kept that much longer.
NEAREST = 8
#: A result that is made before others that stand in front of it is kept the longer: bytes by which the most that is
#: alive at a time may grow for that.
MOST_EARLY = 1 << 20


def batch_launches(
    context: Context, ordered: Sequence[Unit], answer: Callable[[int, int, Fuse | Refuse], None]
) -> bool:
    """Merge units of the context's graph into batches, going through them in the order in which they would run;
    `answer` gets each pair that was weighed, before it is merged. Gives whether there are any."""
    graph = context.graph
    if "batch" in context.disabled:
        return False
    recent: list[int] = []
    positions: dict[int, int] = {}
    made = False
    live = live_bytes(lifetimes(ordered, graph.layouts, graph.outputs).values(), len(ordered))
    peak = max(live, default=0)
    for here, unit in enumerate(ordered):
        if isinstance(unit, ExternNode) or not may_be_a_part(unit, context):
            continue
        number = graph.number_of(unit)
        stored = sum(hint(graph.layouts[buffer].bytes) for buffer in unit.stored)
        for position in range(len(recent) - 1, max(len(recent) - 1 - NEAREST, -1), -1):
            other = recent[position]
            if graph.must_precede(other, number) or graph.must_precede(number, other):
                continue
            verdict = batch(other, number, context)
            between = range(positions[other], here)
            growth = max(live[position] for position in between) + stored - peak
            if len(between) > 1 and growth > MOST_EARLY and isinstance(verdict, Fuse):
                kept = {"early": unit.members[-1].name, "bytes": growth, "limit": MOST_EARLY}
                verdict = Refuse("profit.kept_longer", verdict.numbers | kept)
            answer(other, number, verdict)
            if isinstance(verdict, Fuse):
                for earlier in between:
                    live[earlier] += stored
                    peak = max(peak, live[earlier])
                recent[position] = graph.merge(other, number, verdict.group)
                positions[recent[position]] = here
                made = True
                break
        else:
            recent.append(number)
            positions[number] = here
    return made


def may_be_a_part(group: Group, context: Context) -> bool:
    """Whether a unit can share a launch, and is short enough to gain by it: see the module's docstring."""
    return can_be_a_part(group) and too_long(group, context) is None


def too_long(group: Group, context: Context) -> Refuse | None:
    """Whether a unit is a reduction that takes longer than its launch. Such reductions fill the device by
    themselves."""
    spared = context.device.launch_us + context.device.latency_us
    fixed = context.device.alone_us + spared
    rest = context.cost(group).microseconds - fixed if group.space.r and not isinstance(group, Batch) else 0.0
    if rest <= spared:
        return None
    numbers = {"slow": group.members[-1].name, "bytes": context.cost(group).bytes, "rest_us": rest, "spared_us": spared}
    return Refuse("profit.long_reduction", numbers)


def can_be_a_part(group: Group) -> bool:
    """Whether it can share a launch. What works in place, or with scratch memory of its own, keeps its launch."""
    if any(dim.size == 0 for dim in group.space.dims) or group.updated or group.across:
        return False
    return not (isinstance(group, Product) or group.is_cooperative or any(m.body.is_scatter for m in group.members))


def side_by_side(a: int, b: int, context: Context, is_forced: bool = False) -> Fuse | Refuse:
    """The verdict on two units that share nothing; a forced one may be as long as it likes."""
    graph = context.graph
    if "batch" in context.disabled:
        return Refuse("policy.disabled", {"knob": "batch"})
    units = graph.units[a], graph.units[b]
    extern = next((unit.name for unit in units if isinstance(unit, ExternNode)), None)
    if extern is not None:
        return Refuse("kind.extern", {"extern": extern})
    intermediate = third_between(a, b, graph)
    if intermediate is not None:
        return intermediate
    for first, second in ((a, b), (b, a)):
        if graph.must_precede(first, second):
            return Refuse("kind.own_launch", {"alone": graph.units[second].name})
    for unit in units:
        assert isinstance(unit, Group)
        if not can_be_a_part(unit):
            return Refuse("kind.own_launch", {"alone": unit.members[-1].name})
        refusal = None if is_forced else too_long(unit, context)
        if refusal is not None:
            return refusal
    return batch(a, b, context, is_forced)


def batch(a: int, b: int, context: Context, is_forced: bool = False) -> Fuse | Refuse:
    """The verdict on two units that do not depend on each other. A reduction can take longer as a part: its rows are
    not shared among programs there."""
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    assert not isinstance(one, ExternNode) and not isinstance(two, ExternNode)
    elsewhere = streams_differ(one, two)
    if elsewhere is not None:
        return elsewhere
    parts = (*parts_of(one), *parts_of(two))
    members = tuple(member for part in parts for member in part.members)
    whole = Batch(fused_name(members), parts[0].space, members, one.stored | two.stored, parts=parts)
    buffers = len(whole.read_buffers) + len(whole.stored)
    limits = context.limits
    if limits.most_nodes_of_parts is not None and len(members) > limits.most_nodes_of_parts:
        return Refuse("policy.group_size", {"nodes": len(members), "limit": limits.most_nodes_of_parts})
    if buffers > limits.most_part_buffers or len(parts) > limits.most_parts:
        return Refuse("policy.batch_size", {"parts": len(parts), "buffers": buffers})
    apart = [context.cost(unit) for unit in (one, two)]
    together = context.cost(whole)
    score, numbers = context.score("batch", a, b, apart, together, sum(cost.microseconds for cost in apart))
    numbers |= {"parts": len(parts)} | ({"is_forced": True} if is_forced else {})
    if score.benefit_us <= 0 and not is_forced:
        return Refuse("profit.slower", numbers)
    return unless_forbidden(Fuse.into(REASON, whole, score, numbers), one, two, context)
