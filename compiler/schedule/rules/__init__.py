"""The kinds of fusion, one rule each.

A rule looks at two units and answers with the group that they would become, or with a `Refuse`; it changes nothing.
`can_fuse` asks the rules in turn and weighs the first group that is legal. A new kind of fusion is a new class in this
folder.

`loops` has the fusions in one loop nest; the others are in `across`, `products`, `shared_operand`, `concatenation` and
`batch`. `verdicts` is what a rule is asked with and answers, and `alike` tells pairs that need not be asked about
again.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.decisions import Refuse, family_of
from compiler.ir.nodes import Layout
from compiler.schedule.cost.kernel import sequence_us
from compiler.schedule.group import Group
from compiler.schedule.legality import scatter_between, streams_differ
from compiler.schedule.records.choices import Choice, weighed
from compiler.schedule.rules.across import ReduceAcross
from compiler.schedule.rules.alike import pair_of
from compiler.schedule.rules.batch import side_by_side
from compiler.schedule.rules.loops import FuseLoops, InlineProducer
from compiler.schedule.rules.products import fuse_with_call, is_call
from compiler.schedule.rules.shared_operand import may_share, share_operand
from compiler.schedule.rules.verdicts import (
    EVEN,
    Context,
    Fuse,
    Limits,
    Rule,
    Score,
    Verdict,
    third_between,
    unless_forbidden,
)
from compiler.schedule.units import Unit

__all__ = ["Context", "Fuse", "Limits", "Score", "can_fuse", "shared_buffers", "third_between"]

RULES: tuple[Rule, ...] = (FuseLoops("vertical"), InlineProducer(), FuseLoops("horizontal"), ReduceAcross())


def shared_buffers(one: Unit, two: Unit, layouts: dict[str, Layout]) -> tuple[list[str], bool]:
    """Buffers that both touch, those that `one` makes for `two` first; and whether there are any of the latter."""
    made, read_a, read_b = one.produced, one.needed, two.needed
    vertical = sorted(made & read_b)
    size = {name: layouts[name].bytes for name in read_a & read_b}
    return vertical + sorted(size, key=lambda name: (-size[name], name)), bool(vertical)


def can_fuse(a: int, b: int, context: Context) -> Fuse | Refuse:
    """May units `a` and `b` (a before b, where one depends on the other) become one kernel, and does it pay?"""
    graph = context.graph
    return unless_forbidden(_by_rules(a, b, context), graph.units[a], graph.units[b], context)


def _by_rules(a: int, b: int, context: Context) -> Fuse | Refuse:
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    elsewhere = streams_differ(one, two)
    if elsewhere is not None:
        return elsewhere
    if may_share(one, two, context):
        return share_operand(a, b, context)
    if is_call(one) or is_call(two):
        return fuse_with_call(a, b, context)
    assert isinstance(one, Group) and isinstance(two, Group)
    intermediate = third_between(a, b, graph)
    if intermediate is not None:
        return intermediate
    if len(one.members) + len(two.members) > context.limits.most_nodes:
        nodes = len(one.members) + len(two.members)
        return Refuse("policy.group_size", {"nodes": nodes, "limit": context.limits.most_nodes})
    scatter = scatter_between(one, two)
    if scatter is not None:
        return scatter
    shared, _ = shared_buffers(one, two, graph.layouts)
    if not shared:
        return side_by_side(a, b, context)
    pair = pair_of(a, b, shared, context)
    known = None if pair is None else context.verdicts.get(pair.form)
    if known is not None and pair is not None:
        return _as_known(known, pair.names, a, b, shared, context)
    verdict, rule = _asked(a, b, shared, context)
    if pair is not None:
        context.verdicts[pair.form] = Verdict(verdict, pair.names, rule)
    return verdict


def _asked(a: int, b: int, shared: list[str], context: Context) -> tuple[Fuse | Refuse, Rule | None]:
    """The verdict on two groups that share buffers, and the rule that makes them one, if there is one."""
    one, two = context.graph.units[a], context.graph.units[b]
    assert isinstance(one, Group) and isinstance(two, Group)
    refusal: Refuse | None = None
    for rule in RULES:
        if not rule.applies(one, two, shared):
            continue
        outcome = (
            Refuse("policy.disabled", {"knob": rule.kind})
            if rule.kind in context.disabled
            else rule.fuse(one, two, shared, context)
        )
        if isinstance(outcome, Group):
            return _weigh(rule.kind, a, b, outcome, context), rule
        refusal = outcome if refusal is None else _more_telling(refusal, outcome)
    assert refusal is not None
    return refusal, None


def _as_known(
    known: Verdict, names: tuple[str, ...], a: int, b: int, shared: list[str], context: Context
) -> Fuse | Refuse:
    """The known verdict on a pair that differs in names alone."""
    renamed = dict(zip(known.names, names, strict=True))
    if isinstance(known.answer, Refuse):
        return known.answer.renamed(renamed)
    one, two = context.graph.units[a], context.graph.units[b]
    assert isinstance(one, Group) and isinstance(two, Group) and known.rule is not None
    rule = known.rule

    def make() -> Group:
        group = rule.fuse(one, two, shared, context)
        assert isinstance(group, Group)
        return context.with_best_strategy(group)

    score = replace(known.answer.score, distance=context.graph.distance(a, b))
    stored = frozenset([renamed[name] for name in known.answer.stored])
    return Fuse(known.answer.reason, score, known.answer.numbers, stored, make)


def _more_telling(first: Refuse, second: Refuse) -> Refuse:
    """Prefer another rule's reason to a mismatch of loops, which says little."""
    loops, telling = ("shape", "index"), ("dependency", "profit")
    is_vague = family_of(first.reason) in loops and family_of(second.reason) in telling
    return second if is_vague else first


def _weigh(kind: str, a: int, b: int, group: Group, context: Context) -> Fuse | Refuse:
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    assert isinstance(one, Group) and isinstance(two, Group)
    is_forced = context.directives.forces(one, two)
    # Slices of one buffer have one address and no memory of their own.
    buffers = len(group.read_buffers) + len({graph.parts.get(name, name) for name in group.stored})
    most = context.limits.most_buffers
    if kind == "vertical" and not group.space.r:
        most = max(most, context.limits.most_buffers_of_chain)
    if buffers > most and not is_forced:
        return Refuse("profit.too_many_buffers", {"buffers": buffers, "limit": most})
    apart = [context.cost(unit) for unit in (one, two)]
    group = context.with_best_strategy(group)
    fused = context.cost(group)
    score, numbers = context.score(
        kind, a, b, apart, fused, sequence_us(apart, context.device),
        goes_along_memory=not group.space.r or group.reduces_along_memory(group.read_buffers),
        is_transposed=not group.space.r and not group.writes_along_one_loop,
        is_forced=is_forced,
        nodes=len(group.members),
    )  # fmt: skip
    numbers |= {
        "operations_apart": sum(cost.operations for cost in apart),
        "operations_fused": fused.operations,
        "space": str(group.space),
    }
    if is_forced:
        numbers["is_forced"] = True
    # What reads nothing is computed where it is needed when times are even: nothing has to be kept, or launched for it.
    is_even = not one.read_buffers and fused.microseconds < score.unfused_us * (1 + EVEN)
    is_taken = score.benefit_us > 0 or is_even or is_forced
    weighed(Choice(score.category, (one, two), (group,), score.unfused_us, score.fused_us, is_taken))
    if not is_taken:
        return Refuse("profit.slower", numbers)
    return Fuse.into(f"fused.{kind}", group, score, numbers)
