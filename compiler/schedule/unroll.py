"""Unroll a reduction of few elements: it is then pointwise, and can be computed wherever its result is read.

x: r < 4: v = reduce sum a[4*x + r]        ->        x: v = a[4*x] + a[4*x + 1] + a[4*x + 2] + a[4*x + 3]
   r < 4: b[4*x + r] = a[4*x + r] / v                   b[4*x] = a[4*x] / v;  b[4*x + 1] = a[4*x + 1] / v;  ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from compiler.ir.body import Body, Instruction, drop_dead, operands_of, renumbered
from compiler.ir.choices import without_known_conditions
from compiler.ir.index import Dim, Index
from compiler.ir.size import known
from compiler.schedule.extremes import WrittenOut, position_of_best
from compiler.schedule.group import Group, Member, Space
from compiler.schedule.inline import inline_body
from compiler.schedule.once import once

#: Longer rows are reduced once, whoever reads the result.
MOST_ELEMENTS = 8

#: What joins two elements of a reduction.
JOINED_BY = {
    "sum": "add",
    "prod": "mul",
    "min": "minimum",
    "max": "maximum",
    "any": "logical_or",
    "all": "logical_and",
}


def is_short(group: Group) -> bool:
    """Whether the reductions of a group are of few elements, as many in every call."""
    count = group.space.reduction_numel
    return isinstance(count, int) and count <= MOST_ELEMENTS


def written_out(group: Group, kept: tuple[Dim, ...] = (), *, with_points: bool = False) -> Group | None:
    """The group without its reduction loops, but for those that are `kept`; None where a value of each of their points
    is needed in memory, unless these are to be stored, or added there, one after the other (`with_points`), or of a
    position with loops that are kept."""
    if group.has_scan or group.across or (group.updated and not with_points):
        return None
    members: list[Member] = []
    of_points: list[Member] = []
    for member in group.members:
        if member.body.reduction is None and not _is_of_points(member, group.space):
            members.append(member)
        elif member.body.reduction is None:
            if member.body.is_random or (member.name in group.stored and not with_points):
                return None
            stores = _at_each_point(member, of_points, group.space) if member.name in group.stored else ()
            if stores is None:
                return None
            of_points.append(member)
            members += stores or [replace(member, body=Body(()))]
        else:
            body = _without_loops(member, of_points, group.space, kept)
            if body is None:
                return None
            members.append(replace(member, body=body))
    return replace(
        group, space=Space(group.space.x, kept), members=tuple(members), single_pass=frozenset(), is_cooperative=False
    )  # fmt: skip


def _is_of_points(member: Member, space: Space) -> bool:
    """Whether it runs for each point of the reduction loops; a scatter may do so although nothing of it differs."""
    is_repeated = member.node.is_scatter and member.node.numel != space.numel
    return is_repeated or not member.body.dims.isdisjoint(space.r)


def _at_each_point(member: Member, of_points: Sequence[Member], space: Space) -> list[Member] | None:
    """What a member stores at the points of the reduction loops, each as a member of its own, in their order."""
    body = _by_itself(member, of_points, space)
    if body is None or body.is_random:
        return None
    # A part of a concatenation is then known to be one, or none.
    bodies = [without_known_conditions(body.substitute(point)) for point in _points(space.r)]
    return [replace(member, body=of_point) for of_point in bodies]


def _points(dims: Sequence[Dim]) -> Iterator[dict[Dim, Index]]:
    """The points of loops whose sizes are known, in order."""
    for point in product(*(range(known(dim.size)) for dim in dims)):
        yield {dim: Index.number(number) for dim, number in zip(dims, point, strict=True)}


def _by_itself(member: Member, of_points: Sequence[Member], space: Space) -> Body | None:
    """A member's body with the arithmetic of those members in it whose values it reads at points of the loops."""
    body: Body | None = member.body
    for producer in reversed(of_points):
        if body is not None and any(access.buffer == producer.name for access in body.reads):
            body = inline_body(body, producer.body, producer.name, space.dims)
    return body


def _without_loops(member: Member, of_points: Sequence[Member], space: Space, kept: tuple[Dim, ...]) -> Body | None:
    body = _by_itself(member, of_points, space)
    if body is None or body.is_random or sum(i.op == "reduce" for i in body.instructions) != 1:
        return None
    if kept and (body.reduction is None or str(body.reduction.value) not in JOINED_BY):
        return None
    r_dims, is_partly = tuple(dim for dim in space.r if dim not in kept), bool(kept)
    # A reduction is asked about with each kernel that may take it in.
    return once(partial(unrolled, body, r_dims, is_partly), ("unroll", r_dims, is_partly), (body,), ())


def unrolled(body: Body, r_dims: Sequence[Dim], is_partly: bool = False) -> Body:
    """A body with a reduction over `r_dims`, whose sizes are known, as one without: its terms in the loops' order. The
    reduction stays, over the loops that are left, where these are only a part (`is_partly`)."""
    out = WrittenOut()
    at = next(number for number, instruction in enumerate(body.instructions) if instruction.op == "reduce")
    reduction = body.instructions[at]
    terms: list[tuple[int, ...]] = []
    numbers: dict[int, int] = {}
    changing = _changing(body.instructions[:at], frozenset(r_dims))
    for number, values in enumerate(_points(r_dims)):
        for old in range(at) if number == 0 else changing:
            numbers[old] = out.add(renumbered(body.instructions[old], numbers, values))
        terms.append(tuple([numbers[operand] for operand in reduction.operands]))
    numbers[at] = _joined(out, reduction, terms)
    if is_partly:
        numbers[at] = out.add(replace(reduction, operands=(numbers[at],)))
    for old, instruction in enumerate(body.instructions[at + 1 :], start=at + 1):
        numbers[old] = out.add(renumbered(instruction, numbers, {}))
    return without_known_conditions(drop_dead(Body(tuple(out.instructions))))


def _changing(instructions: Sequence[Instruction], dims: frozenset[Dim]) -> list[int]:
    """The instructions that differ from point to point of the loops `dims`."""
    found: dict[int, None] = {}
    for number, i in enumerate(instructions):
        is_moved = i.index is not None and not i.index.dims.isdisjoint(dims)
        if is_moved or not found.keys().isdisjoint(operands_of(i)):
            found[number] = None
    return list(found)


def _joined(out: WrittenOut, reduction: Instruction, terms: Sequence[tuple[int, ...]]) -> int:
    """The number of what a reduction comes to, of all its terms."""
    kind = str(reduction.value)
    if kind not in JOINED_BY:
        return position_of_best(out, kind, [(value, position) for value, position in terms])
    total, *rest = (value for (value,) in terms)
    for value in rest:
        total = out.add(replace(reduction, op=JOINED_BY[kind], operands=(total, value), value=None))
    return total
