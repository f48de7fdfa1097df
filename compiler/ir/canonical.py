"""Loops in their canonical form: as few variables as the accesses allow.

    for x0 < 1024, x1 < 512:  y[512*x0 + x1] = sin x[512*x0 + x1]    ->    for x0 < 524288:  y[x0] = sin x[x0]

Two loops over the same points then have the same variables, whatever the shapes were called, and comparing them costs
no algebra.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.body import Body, Instruction, drop_dead
from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.nodes import LoopNode


def canonicalise(node: LoopNode) -> LoopNode:
    """Drop variables of size one, merge neighbours that every access treats as one, and number the rest anew."""
    x_dims, body = _merge_neighbours([dim for dim in node.x_dims if dim.size != 1], node.body)
    r_dims, body = _merge_neighbours([dim for dim in node.r_dims if dim.size != 1], body)
    if not r_dims:
        body = without_reduction(body)
    new_x = tuple(Dim(f"x{place}", dim.size) for place, dim in enumerate(x_dims))
    new_r = tuple(Dim(f"r{place}", dim.size) for place, dim in enumerate(r_dims))
    renamed = {old: Index.of(new) for old, new in zip([*x_dims, *r_dims], [*new_x, *new_r], strict=True)}
    return replace(node, x_dims=new_x, r_dims=new_r, body=body.substitute(renamed))


def without_reduction(body: Body) -> Body:
    """The body of a reduction or scan over one element, whose result is that element (or its position)."""
    aliases: dict[int, int] = {}
    result: list[Instruction] = []
    for number, instruction in enumerate(body.instructions):
        operands = tuple(aliases.get(operand, operand) for operand in instruction.operands)
        result.append(replace(instruction, operands=operands))
        if instruction.op in ("reduce", "scan"):
            aliases[number] = operands[-1]
    return drop_dead(Body(tuple(result))) if aliases else body


def _merge_neighbours(dims: list[Dim], body: Body) -> tuple[list[Dim], Body]:
    """Merge each variable with the one inside it for as long as no index gets harder by it."""
    place = 0
    while place + 1 < len(dims):
        outer, inner = dims[place], dims[place + 1]
        merged = Dim(f"{outer.name}_{inner.name}", outer.size * inner.size)
        candidate = _merge(body, outer, inner, merged)
        if candidate is None:
            place += 1
            continue
        body = candidate
        dims = [*dims[:place], merged, *dims[place + 2 :]]
        # The variable before may go with the larger one where it did not with the smaller.
        place = max(place - 1, 0)
    return dims, body


def _merge(body: Body, outer: Dim, inner: Dim, merged: Dim) -> Body | None:
    """The body over `merged = outer * inner.size + inner`, or None where an index would need a new division."""
    whole = Index.of(merged)
    values = {outer: whole // inner.size, inner: whole % inner.size}
    for instruction in body.instructions:
        index = instruction.index
        if index is None or index.dims.isdisjoint(values):
            continue
        if divisions(index.substitute(values)) > divisions(index):
            return None
    return body.substitute(values)


def divisions(index: Index) -> int:
    """How many divisions and remainders it takes to compute the index."""
    return sum(1 + divisions(atom.numerator) for atom, _ in index.terms if isinstance(atom, FloorDiv | Mod))
