"""Other places for loads are the same wherever the loaded value counts, and take fewer divisions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from compiler.ir.body import Body, trace
from compiler.ir.index import Dim, Index
from compiler.ir.masked_indices import simpler_indices
from compiler.ir.ops import ops
from tests.ir.points import value_at

F32, I64 = torch.float32, torch.int64
X, Y, Z = Dim("x0", 5), Dim("x1", 8), Dim("x2", 2)
x, y, z = Index.of(X), Index.of(Y), Index.of(Z)
ROW = 7 * x + y - 1  # one column is missing at the left


def at_least(index: Index, least: int) -> Any:
    return ops.ge(ops.index_value(index), ops.constant(least, I64))


def below(index: Index, end: int) -> Any:
    return ops.lt(ops.index_value(index), ops.constant(end, I64))


def in_row(index: Index) -> Index:
    return 9 * (index // 7) + index % 7


def masked() -> Any:
    return ops.load("a", in_row(ROW), F32, at_least(y - 1, 0))


def chosen() -> Any:
    """A load without a mask, whose value counts only under one."""
    mask = at_least(8 * z + y, 8)
    value = ops.load("a", 16 * ((x + (y + z + 7) // 8 + 4) % 5) + (y + z + 7) % 8, F32)
    return ops.where(mask, ops.mul(value, ops.constant(2.0, F32)), ops.constant(0.0, F32))


def from_both_sides() -> Any:
    mask = ops.logical_and(ops.gt(ops.index_value(y), ops.constant(0, I64)), below(y, 8))
    return ops.load("a", in_row(ROW), F32, mask)


def also_used_outside() -> Any:
    value = ops.load("a", (y + 15) // 8 * 8 + (y + 7) % 8, F32)
    return ops.add(value, ops.where(at_least(y, 1), value, ops.constant(0.0, F32)))


CASES: list[tuple[Callable[[], Any], bool]] = [
    (masked, True), (chosen, True), (from_both_sides, True), (also_used_outside, False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "is_simpler"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_places_are_the_same_where_the_mask_holds(make: Callable[[], Any], is_simpler: bool) -> None:
    body = trace(lambda: ops.store("b", 16 * x + 2 * y + z, make()))
    places = simpler_indices(body.instructions)
    assert bool(places) == is_simpler
    for number, place in places.items():
        index, other = body.instructions[number].index, place.index
        assert index is not None
        assert len(place.masks) == 1 and place.masks[0] < number
        assert "//" not in str(other) and "%" not in str(other)
        for point in product(range(5), range(8), range(2)):
            dims = dict(zip((X, Y, Z), point, strict=True))
            if holds(body, dims):
                assert value_at(other, dims) == value_at(index, dims)


def holds(body: Body, dims: dict[Dim, int]) -> bool:
    """Whether all comparisons of a body hold at a point."""
    truth = {"ge": int.__ge__, "gt": int.__gt__, "lt": int.__lt__}
    for i in body.instructions:
        if i.op in truth:
            left, right = (body.instructions[operand] for operand in i.operands)
            assert left.index is not None
            if not truth[i.op](value_at(left.index, dims), int(right.value)):  # type: ignore[arg-type]
                return False
    return True


def test_a_load_that_cannot_wait_for_a_whole_mask_takes_a_part_of_it() -> None:
    def scaled() -> Any:
        whole = ops.logical_and(at_least(y, 5), at_least(x, 1))
        return ops.where(whole, ops.load("a", (y + 1) % 3, F32), ops.constant(0.0, F32))

    steps = trace(lambda: ops.store("b", 16 * x + 2 * y + z, scaled())).instructions
    (load,) = (number for number, step in enumerate(steps) if step.op == "load")
    (whole,) = (number for number, step in enumerate(steps) if step.op == "logical_and")
    assert simpler_indices(steps)[load].masks == (whole,)
    (part,) = simpler_indices(steps, lambda mask, load: mask != whole)[load].masks
    assert part in steps[whole].operands
    assert not simpler_indices(steps, lambda mask, load: mask not in (whole, part))
