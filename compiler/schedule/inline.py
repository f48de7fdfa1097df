"""Inline a producer into its consumer: compose two bodies at the points that are read.

    producer   store y[512*d0 + d1] = sin(load x[512*d0 + d1])
    consumer   ... load y[f(c)] ...        ->        ... sin(load x[f(c)]) ...

Unlike a fusion of loops this needs no one-to-one match, so it serves broadcasts, slices, reversed reads and the
masked regions of a concatenation. It pays when the producer is cheap and nobody else needs its buffer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import torch

from compiler.ir.body import Body, Instruction, drop_dead, moved, renumbered
from compiler.ir.choices import without_known_conditions, without_repeated_choices
from compiler.ir.index import Dim, Index
from compiler.ir.masked_indices import simpler_indices
from compiler.ir.ops import zero_of
from compiler.ir.positions import invert
from compiler.ir.size import Undecided
from compiler.schedule.group import Group, Member
from compiler.schedule.once import once

#: Arithmetic may be repeated where its record stays this short.
LONGEST_INLINED_BODY = 256
#: A body that is longer before its dead instructions go will not be that short after.
LONGEST_WORK = 4 * LONGEST_INLINED_BODY


def inline_body(consumer: Body, producer: Body, producer_name: str, dims: tuple[Dim, ...]) -> Body | None:
    """`consumer` with every load of the producer's buffer replaced by the producer's arithmetic at that point.

    None where the point cannot be told from the offset that is read (see `invert`), where an index there has no form
    that is right for every size of a call, or where it became far too long."""
    make = partial(_inlined, consumer, producer, producer_name, dims)
    return once(make, ("inline", dims), (consumer, producer), (producer_name,))


def _inlined(consumer: Body, producer: Body, producer_name: str, dims: tuple[Dim, ...]) -> Body | None:
    store = next(i for i in producer.instructions if i.op == "store")
    assert store.index is not None
    out: list[Instruction] = []
    numbers: list[int] = []
    for instruction in consumer.instructions:
        here = renumbered(instruction, numbers, {})
        if here.op == "load" and here.buffer == store.buffer:
            assert here.index is not None
            if len(out) > LONGEST_WORK:
                return None
            point = invert(store.index, dims, here.index, is_masked=bool(here.operands))
            if point is None:
                return None
            point |= {dim: Index.number(0) for dim in dims if dim not in point}
            try:
                numbers.append(_splice(out, producer, point, here.operands, here.dtype, producer_name))
            except Undecided:
                return None
        else:
            numbers.append(_append(out, here))
    body = drop_dead(Body(tuple(out)))
    if any(i.op == "load" and i.operands and i.buffer == store.buffer for i in consumer.instructions):
        body = without_repeated_choices(_with_simpler_indices(body))
    has_indices = any(i.index is not None and i.index.indirections for i in body.instructions)
    return without_known_conditions(body) if has_indices else body


def _with_simpler_indices(body: Body) -> Body:
    """The body with the indices of masked loads as simple as their masks let them be: loops that a part of a
    concatenation shares with others are then seen to be the same."""
    indices = simpler_indices(body.instructions)
    masked = {n: access for n, access in indices.items() if body.instructions[n].operands == access.masks}
    changed = (replace(i, index=masked[n].index) if n in masked else i for n, i in enumerate(body.instructions))
    return Body(tuple(changed)) if masked else body


def _splice(
    out: list[Instruction],
    producer: Body,
    point: dict[Dim, Index],
    mask: tuple[int, ...],
    dtype: torch.dtype,
    name: str,
) -> int:
    """Append the producer's instructions at `point`; gives the number of the value that it would have stored."""
    numbers: list[int] = []
    result = -1
    for instruction in producer.instructions:
        here = renumbered(instruction, numbers, point)
        operands = here.operands
        if here.op == "store":
            result = operands[0]
            numbers.append(-1)  # it has no value
            continue
        if here.op == "load" and mask and not _is_always_inside(instruction, point):
            operands = (_both(out, operands[0], mask[0], name),) if operands else mask
        numbers.append(_append(out, moved(here, operands, here.index, here.node or name)))
    if out[result].dtype != dtype:
        result = _append(out, Instruction("to_dtype", (result,), dtype, node=name))
    if mask:
        nothing = _append(out, Instruction("constant", (), dtype, value=zero_of(dtype), node=name))
        result = _append(out, Instruction("where", (mask[0], result, nothing), dtype, node=name))
    return result


def _is_always_inside(load: Instruction, point: dict[Dim, Index]) -> bool:
    """Whether a load that the producer does at each of its points finds an element of the buffer where a mask does not
    hold as well: then it needs none. One of a vector along channels is then the same for all elements of a window."""
    assert load.index is not None
    if load.operands or load.index.indirections:
        return False
    return all(not point[dim].indirections and point[dim].is_within(0, dim.size) for dim in load.index.dims)


def _both(out: list[Instruction], a: int, b: int, node: str) -> int:
    return a if a == b else _append(out, Instruction("logical_and", (a, b), torch.bool, node=node))


def _append(out: list[Instruction], instruction: Instruction) -> int:
    out.append(instruction)
    return len(out) - 1


def compose(group: Group, buffer: str) -> Body | None:
    """What a group stores in `buffer`, as one pointwise body over what the group reads, its reductions and the random
    numbers that it draws.

    None where it is a reduction, a scan, a scatter or a part of a whole itself, draws random numbers, or would become
    too long."""
    bodies = {member.name: member.body for member in group.members if member.body.instructions}
    result = bodies.get(buffer)
    if result is None or result.is_collective or result.is_random or result.is_scatter:
        return None
    if any(member.name == buffer and member.node.part_of is not None for member in group.members):
        return None
    if _least_length(result, group, bodies) > LONGEST_INLINED_BODY:
        return None
    for member in reversed(group.members):
        body = bodies.get(member.name)
        if body is None or body.is_collective or body.is_random or member.name == buffer:
            continue
        if member.name in result.loads:
            composed = inline_body(result, body, member.name, group.space.dims)
            if composed is None or len(composed.instructions) > LONGEST_INLINED_BODY:
                return None
            result = composed
    return result


def _least_length(result: Body, group: Group, bodies: dict[str, Body]) -> int:
    """How many instructions composing will come to at least, by counting: a load makes room for the producer's
    instructions but its store. 0 where counting does not tell, as an instruction may be needed no more."""
    if any(access.index.indirections for body in bodies.values() for access in body.reads):
        return 0
    length, loads = len(result.instructions), Counter(result.loads)
    for member in reversed(group.members):
        body = bodies.get(member.name)
        times = loads.pop(member.name, 0)
        if body is None or not times or body.is_collective or body.is_random or body is result:
            continue
        length += times * (len(body.instructions) - 2)
        for buffer, count in body.loads.items():
            loads[buffer] += times * count
    return length


def inline_into(group: Group, arithmetic: Body, buffer: str, dims: tuple[Dim, ...]) -> tuple[Member, ...] | None:
    """The group's members with `arithmetic`, a body over `dims` that stores `buffer`, in place of its loads.

    None where a point cannot be told, or where a body would become too long."""
    members: list[Member] = []
    for member in group.members:
        body: Body | None = member.body
        if buffer in member.body.loads:
            body = inline_body(member.body, arithmetic, buffer, dims)
        if body is None or len(body.instructions) > LONGEST_INLINED_BODY:
            return None
        members.append(member if body is member.body else replace(member, body=body))
    return tuple(members)
