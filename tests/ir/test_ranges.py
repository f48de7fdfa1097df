"""Values lie in the ranges that are foretold of them, and what is left out by these is of no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.ir.body import Body, trace
from compiler.ir.choices import without_known_conditions, without_repeated_choices
from compiler.ir.index import Dim, Index
from compiler.ir.interpret import apply
from compiler.ir.ops import ops
from compiler.ir.ranges import ranges_of
from compiler.lowering.upsampling import Axis, linear_taps
from tests.ir.points import value_at

IMAGE, RESULT = 7, 23
X = Dim("x0", RESULT)
F32, I64 = torch.float32, torch.int64


def stored(make: Callable[[Index], Any]) -> Body:
    return trace(lambda: ops.store("result", Index.of(X), make(Index.of(X))))


def taps(make: Callable[..., Any], **options: Any) -> Callable[[Index], Any]:
    """Places and weights of an interpolation, added up."""

    def total(x: Index) -> Any:
        pairs = make(Axis(IMAGE, RESULT, **options), x, F32)
        parts = [ops.mul(ops.to_dtype(place, F32), weight) for place, weight in pairs]
        return ops.add(ops.add(parts[0], parts[1]), ops.constant(0.0, F32))

    return total


def mirrored(x: Index) -> Any:
    last, place = ops.constant(IMAGE - 1, I64), ops.index_value(x - 5)
    once = ops.sub(last, ops.abs(ops.sub(last, ops.abs(place))))
    return ops.minimum(ops.maximum(once, ops.constant(-9, I64)), last)


def in_window(x: Index) -> Any:
    """Conditions that hold everywhere, nowhere and somewhere."""
    always, never = ops.ge(ops.index_value(x), ops.constant(0, I64)), ops.lt(ops.index_value(x + 1), ops.index_value(x))
    somewhere = ops.logical_and(always, ops.lt(ops.index_value(2 * x - 3), ops.constant(IMAGE, I64)))
    value = ops.where(somewhere, ops.index_value(x), ops.constant(-1, I64))
    return ops.where(ops.logical_or(never, ops.logical_not(somewhere)), ops.constant(5, I64), value)


def chosen_inside(x: Index) -> Any:
    """What is cut off to a place counts only inside of an image, as a grid that is sampled says."""
    place = ops.floor(ops.mul(ops.to_dtype(ops.index_value(x - 9), F32), ops.constant(0.7, F32)))
    inside = ops.logical_and(ops.ge(place, ops.constant(0.0, F32)), ops.lt(place, ops.constant(3.5, F32)))
    return ops.minimum(ops.where(inside, ops.to_dtype(place, I64), ops.constant(0, I64)), ops.constant(3, I64))


BODIES = {
    "chosen inside": chosen_inside,
    "linear": taps(linear_taps),
    "linear, corners aligned": taps(linear_taps, aligns_corners=True),
    "linear, by a scale": taps(linear_taps, scale=3.3),
    "mirrored": mirrored,
    "in a window": in_window,
}


def values_at(body: Body, x: int) -> dict[int, torch.Tensor]:
    values: dict[int, torch.Tensor] = {}
    for number, i in enumerate(body.instructions):
        if i.op == "index_value":
            assert i.index is not None
            values[number] = torch.tensor(value_at(i.index, {X: x}), dtype=i.dtype)
        elif i.op == "store":
            values[-1] = values[i.operands[0]]
        else:
            values[number] = apply(i, values, torch.device("cpu"))
    return values


@pytest.mark.parametrize("name", BODIES)
def test_values_lie_in_their_ranges_and_stay_the_same(name: str) -> None:
    body = stored(BODIES[name])
    shorter, ranges = without_known_conditions(body), ranges_of(body.instructions)
    assert len(shorter.instructions) < len(body.instructions)
    for x in range(RESULT):
        values = values_at(body, x)
        for number, found in enumerate(ranges):
            if found is not None:
                assert found[0] <= float(values[number]) <= found[1], body.lines()[number]
        assert values_at(shorter, x)[-1] == values[-1]


def test_a_mask_is_applied_once() -> None:
    def nested(x: Index) -> Any:
        mask = ops.lt(ops.index_value(x), ops.constant(IMAGE, I64))
        inner = ops.relu(ops.where(mask, ops.to_dtype(ops.index_value(x), F32), ops.constant(0.0, F32)))
        divided = ops.floordiv(ops.constant(8, I64), ops.where(mask, ops.index_value(x + 1), ops.constant(1, I64)))
        both = ops.add(inner, ops.to_dtype(divided, F32))
        return ops.where(mask, both, ops.constant(-1.0, F32))

    body = stored(nested)
    shorter = without_repeated_choices(body)
    # The divisor keeps its choice: a CPU stops at a division by zero.
    assert [sum(i.op == "where" for i in b.instructions) for b in (body, shorter)] == [3, 2]
    assert all(values_at(shorter, x)[-1] == values_at(body, x)[-1] for x in range(RESULT))
