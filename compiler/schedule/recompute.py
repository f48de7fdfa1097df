"""Recompute a stored value in its readers, where that is cheaper than to write it and read it back.

    kernel 1   m = max over r of x;  d = x - m;  s = sum of exp(d);  store d, s
    kernel 2   ... load d[target] ...
becomes
    kernel 1   m = max over r of x;  d = x - m;  s = sum of exp(d);  store m, s
    kernel 2   ... (load x[target] - load m) ...

A reduction of few elements is written out for it, as it is for a single reader: distances of pairs of points are then
computed once for each point's nearest one, and never stored.

This is no fusion of two units: both stay, but a buffer between them does not reach memory any more. A kernel of whose
results none is left to store is no kernel any more: the first of its readers has its nodes. It is tried after fusion,
when it is known which buffers are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compiler.decisions import Refuse
from compiler.ir.body import Body
from compiler.schedule.group import Group, Member
from compiler.schedule.inline import compose, inline_into
from compiler.schedule.names import fused_name
from compiler.schedule.products.loops import Product
from compiler.schedule.records.choices import Choice, weighed
from compiler.schedule.rules import Context, Fuse, Score, third_between
from compiler.schedule.rules.verdicts import EVEN
from compiler.schedule.units import Unit
from compiler.schedule.unroll import is_short, written_out

REASON = "fused.recompute"
REFUSAL = "profit.recompute"


def _groups_alike(maker: Unit, readers: list[Unit], buffer: str) -> list[Group]:
    """The readers of a buffer, if each of them is a group that could have the arithmetic of its maker; else none."""
    groups = [unit for unit in readers if isinstance(unit, Group) and buffer not in unit.updated]
    apart = any(isinstance(unit, Product) or unit.stream != maker.stream for unit in (maker, *readers))
    return groups if len(groups) == len(readers) and not apart else []


@dataclass(frozen=True)
class Recomputed:
    """What is left of the maker of a buffer, None where nothing is; and what becomes of its readers, by their numbers,
    the one that has the nodes of a maker that is gone in front."""

    maker: Group | None
    readers: dict[int, Fuse]


def _without_loads(
    maker: Group, readers: list[Group], buffer: str, outputs: frozenset[str]
) -> tuple[Group | None, list[Group]] | None:
    """What is left of the maker of `buffer` without the store, which an output keeps, and the readers with its
    arithmetic; None where it is not possible. A reduction of few elements is written out in them."""
    source = (written_out(maker) or maker) if maker.space.r and is_short(maker) else maker
    arithmetic = compose(source, buffer)
    if arithmetic is None:
        return None
    needed = {access.buffer for access in arithmetic.reads} & maker.produced
    smaller = _without_what_nothing_needs(replace(maker, stored=(maker.stored - ({buffer} - outputs)) | needed))
    changed: list[Group] = []
    for group in readers:
        members = inline_into(group, arithmetic, buffer, source.space.dims)
        if members is None:
            return None
        changed.append(replace(group, members=members))
    return (smaller if smaller.stored or smaller.has_check else None), changed


def _without_what_nothing_needs(group: Group) -> Group:
    """The group with empty bodies for the nodes that lead to nothing that it stores: its kernel does not compute them,
    so it must not be counted with what they read. A reduction stays if no other one is left to run the loops for."""
    needed = set(group.stored)
    members: list[Member] = []
    for member in reversed(group.members):
        if member.name in needed or member.node.check is not None or member.node.updates is not None:
            needed.update(member.body.loads)
            members.append(member)
        else:
            members.append(replace(member, body=Body(())))
    if group.space.r and not any(member.body.is_collective for member in members):
        return group
    kept = frozenset(member.name for member in members if member.body.instructions)
    return replace(group, members=tuple(members[::-1]), single_pass=group.single_pass & kept)


def _with_nodes_of(maker: Group, reader: Group) -> Group:
    """The reader with the nodes of a maker that is gone, which compute nothing any more."""
    gone = [replace(member, body=Body(())) for member in maker.members]
    members = (*gone, *reader.members)
    return replace(reader, name=fused_name(members), members=members)


def recompute_in_readers(a: int, buffer: str, context: Context) -> Recomputed | Refuse | None:
    """What becomes of the maker of `buffer`, the unit `a`, and of its readers without the store and the loads. What is
    an output is stored all the same; its readers may still find what it is made of in fewer bytes.

    A refusal where it does not pay; None where it is not possible (a reduction, a library call, a matrix product, a
    scatter or another stream among the readers)."""
    graph = context.graph
    maker = graph.units[a]
    readers = sorted(
        graph.readers[buffer] - {a}, key=lambda reader: (third_between(a, reader, graph) is not None, reader)
    )
    groups = _groups_alike(maker, [graph.units[number] for number in readers], buffer)
    if not isinstance(maker, Group) or not groups:
        return None
    made = _without_loads(maker, groups, buffer, frozenset(graph.outputs))
    if made is None:
        return None
    for group in made[1]:
        limits, buffers = context.limits, len(group.read_buffers) + len(group.stored)
        most = limits.most_buffers if group.space.r else limits.most_buffers_of_chain
        if buffers > most:
            return Refuse("profit.too_many_buffers", {"buffers": buffers, "limit": most})
    smaller = None if made[0] is None else context.with_best_strategy(made[0])
    changed = [context.with_best_strategy(group) for group in made[1]]
    if smaller is None:
        # It is a producer that is computed in its readers, if in more than one.
        if "inline" in context.disabled or len(maker.members) + len(changed[0].members) > context.limits.most_nodes:
            return None
        changed[0] = _with_nodes_of(maker, changed[0])
    numbers, score, pays = _weighed(buffer, (maker, *groups), smaller, changed, context)
    if not pays:
        return Refuse(REFUSAL, numbers)
    # Computed again, it would be in the kernel of its reader after all.
    forbidden = next((pair for group in groups if (pair := context.directives.forbidden_between(maker, group))), None)
    if forbidden is not None:
        return Refuse("policy.forbidden", numbers | {"forbidden_a": forbidden[0], "forbidden_b": forbidden[1]})
    verdicts = [Fuse.into(REASON, group, score, numbers) for group in changed]
    return Recomputed(smaller, dict(zip(readers, verdicts, strict=True)))


def _weighed(
    buffer: str, apart: tuple[Group, ...], smaller: Group | None, changed: list[Group], context: Context
) -> tuple[dict[str, Any], Score, bool]:
    """What a verdict tells of it, its score, and whether it pays."""
    together = (*([] if smaller is None else [smaller]), *changed)
    before, after = (sum(context.cost(group).microseconds for group in groups) for groups in (apart, together))
    # Kernels in a row have what comes with a measurement by itself only once.
    before -= context.device.alone_us * (len(apart) - len(together))
    saved = sum(context.cost(g).bytes for g in apart) - sum(context.cost(g).bytes for g in together)
    # What is not stored may let units fuse, which is not in these figures: saved bytes win where times are even. But
    # a unit that is gone fuses with nothing.
    pays = after < before or (smaller is not None and saved > 0 and after < before * (1 + EVEN))
    weighed(Choice("recompute", apart, together, before, after, pays))
    numbers = {"shared": buffer, "bytes_saved": saved, "fused_us": after, "unfused_us": before}
    return numbers, Score("recompute", saved, 0, after, before), pays
