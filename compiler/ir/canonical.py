"""Loops in their canonical form: as few variables as the accesses allow.

    for x0 < 1024, x1 < 512:  y[512*x0 + x1] = sin x[512*x0 + x1]    ->    for x0 < 524288:  y[x0] = sin x[x0]

Two loops over the same points then have the same variables, whatever the shapes were called, and comparing them costs
no algebra.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from compiler.ir.body import Body, Instruction, drop_dead
from compiler.ir.index import MOST_KEPT, Dim, Index
from compiler.ir.nodes import LoopNode

Dims = tuple[Dim, ...]
Indices = tuple[Index, ...]


def canonicalise(node: LoopNode) -> LoopNode:
    """Drop variables of size one, merge neighbours that every access treats as one, and number the rest anew."""
    indices = tuple(dict.fromkeys([i.index for i in node.body.instructions if i.index is not None]))
    x_dims, r_dims, renewed = _canonical_loops(node.x_dims, node.r_dims, indices)
    body = node.body.map_indices(renewed.__getitem__)
    if not r_dims:
        body = without_reduction(body)
    return replace(node, x_dims=x_dims, r_dims=r_dims, body=body)


def without_reduction(body: Body) -> Body:
    """The body of a reduction or scan over one element, whose result is that element (or its position)."""
    if not body.is_collective:
        return body
    aliases: dict[int, int] = {}
    result: list[Instruction] = []
    for number, instruction in enumerate(body.instructions):
        operands = tuple(aliases.get(operand, operand) for operand in instruction.operands)
        result.append(replace(instruction, operands=operands))
        if instruction.op in ("reduce", "scan"):
            aliases[number] = operands[-1]
    return drop_dead(Body(tuple(result)))


# The loops of a model have few shapes, and what becomes of a loop follows from them and its indices alone.
@lru_cache(maxsize=MOST_KEPT)
def _canonical_loops(x_dims: Dims, r_dims: Dims, indices: Indices) -> tuple[Dims, Dims, Mapping[Index, Index]]:
    """The loops that are left, and what becomes of each of the indices over them."""
    merged_x, found = merge_neighbours(tuple(dim for dim in x_dims if dim.size != 1), indices)
    merged_r, found = merge_neighbours(tuple(dim for dim in r_dims if dim.size != 1), found)
    new_x = tuple(Dim(f"x{position}", dim.size) for position, dim in enumerate(merged_x))
    new_r = tuple(Dim(f"r{position}", dim.size) for position, dim in enumerate(merged_r))
    renamed = {old: Index.of(new) for old, new in zip([*merged_x, *merged_r], [*new_x, *new_r], strict=True)}
    return new_x, new_r, dict(zip(indices, substituted(found, renamed), strict=True))


def merge_neighbours(dims: Dims, indices: Indices) -> tuple[Dims, Indices]:
    """Merge each variable with the one inside it for as long as no index gets harder by it. A merged one keeps the
    outer one's name, which its new size makes another variable."""
    position = 0
    while position + 1 < len(dims):
        outer, inner = dims[position], dims[position + 1]
        merged = Dim(outer.name, outer.size * inner.size)
        candidate = _merge(indices, outer, inner, merged)
        if candidate is None:
            position += 1
            continue
        indices = candidate
        dims = (*dims[:position], merged, *dims[position + 2 :])
        # The variable before may go with the larger one where it did not with the smaller.
        position = max(position - 1, 0)
    return dims, indices


def _merge(indices: Indices, outer: Dim, inner: Dim, merged: Dim) -> Indices | None:
    """The indices over `merged = outer * inner.size + inner`, or None where one would need a new division."""
    whole = Index.of(merged)
    changed = substituted(indices, {outer: whole // inner.size, inner: whole % inner.size})
    is_harder = any(new.divisions > old.divisions for new, old in zip(changed, indices, strict=True))
    return None if is_harder else changed


def substituted(indices: Indices, values: Mapping[Dim, Index]) -> Indices:
    return tuple([index.substitute(values) for index in indices])
