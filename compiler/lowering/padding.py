"""Gradients of padding that repeats the edge. (PyTorch takes the other ways to pad apart itself, and their gradients.)

    padded[j]  =  image[clamp(j - before, 0, n - 1)]

An element inside was copied once, one at the edge once more for each padded element. Where the padding is narrow, every
element of the image sums over as many elements as one at the edge has; where it is wide, that would read much in vain,
and the gradient is scattered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import or_
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, inside_of
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import Position, TensorValue, constant, fixed

aten = torch.ops.aten

#: Elements that one of the image may look at in a sum; beyond that the gradient is scattered.
MOST_LOOKED_AT = 64


def _is_copied(i: Index, size: Integer, distance: Index, before: int, after: int) -> list[Any]:
    """Whether element i of an axis was copied to the place `distance` from its own: there, or beyond the edge."""
    step = ops.index_value(distance)
    ways = [step == 0]
    if before > 0:
        is_first = ops.index_value(i) == 0
        ways.append(is_first & (step < 0))
    if after > 0:
        is_last = ops.index_value(i) == size - 1
        ways.append(is_last & (step > 0))
    if len(ways) == 1:
        return []
    return [reduce(or_, ways)]


def _summed(
    build: Builder, gradient: TensorValue, x: TensorValue, befores: Sequence[int], afters: Sequence[int]
) -> TensorValue:
    rank = len(befores)

    def element(position: Position, reduced: Position) -> Any:
        places, conditions = [], []
        for i, k, size, before, after in zip(position[-rank:], reduced, x.shape[-rank:], befores, afters, strict=True):
            distance = k - max(before, 0)
            places.append(i + before + distance)
            conditions += _is_copied(i, size, distance, before, after)
        inside = inside_of(places, gradient.shape[-rank:])
        mask = all_of([*([] if inside is None else [inside]), *conditions])
        return ops.reduce("sum", gradient.load((*position[:-rank], *places), mask))

    sizes = [max(before, 0) + max(after, 0) + 1 for before, after in zip(befores, afters, strict=True)]
    return build.reduction(x.shape, x.dtype, sizes, element)


def _scattered(build: Builder, gradient: TensorValue, x: TensorValue, befores: Sequence[int]) -> TensorValue:
    rank = len(befores)

    def update(position: Position) -> Update:
        places = []
        for j, size, before in zip(position[-rank:], x.shape[-rank:], befores, strict=True):
            place = ops.maximum(ops.index_value(j - before), 0)
            places.append(ops.indirect(ops.minimum(place, size - 1), size))
        return (*position[:-rank], *places), gradient.load(position), None

    return scatter_into(build, constant(0, x.shape, x.dtype), gradient.shape, "add", update)


def _replication_backward(rank: int, target: Any) -> None:
    @lowers(target)
    def lowering(build: Builder, gradient: TensorValue, x: TensorValue, padding: Sequence[Integer]) -> TensorValue:
        pairs = [(fixed(padding[2 * place]), fixed(padding[2 * place + 1])) for place in reversed(range(rank))]
        befores, afters = [before for before, _ in pairs], [after for _, after in pairs]
        if 0 in x.shape:
            return constant(0, x.shape, x.dtype)
        looked_at = prod(max(before, 0) + max(after, 0) + 1 for before, after in pairs)
        if looked_at > MOST_LOOKED_AT:
            return _scattered(build, gradient, x, befores)
        return _summed(build, gradient, x, befores, afters)


for _rank in (1, 2, 3):
    _replication_backward(_rank, getattr(aten, f"replication_pad{_rank}d_backward").default)
