"""Values that are formulas of loop variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.ir.body import formula_of
from compiler.ir.index import Dim, Index
from compiler.ir.ops import ops

ROW = Dim("row", 64)
SHORT = Dim("short", 3)


def number(value: int, dtype: torch.dtype = torch.int64) -> Any:
    return ops.constant(value, dtype)


def value_of(dim: Dim, dtype: torch.dtype = torch.int64) -> Any:
    return ops.index_value(Index.of(dim), dtype)


def rolled() -> Any:
    return ops.remainder(ops.add(value_of(ROW), number(62)), number(64))


def counted_from_the_end(value: Any, size: int) -> Any:
    return ops.where(ops.lt(value, number(0)), ops.add(value, number(size)), value)


def kept_inside(value: Any, size: int) -> Any:
    return ops.minimum(ops.maximum(value, number(0)), number(size - 1))


def after_a_half(value: Any) -> Any:
    return ops.where(ops.ge(value, number(32)), value, number(0))


@pytest.mark.parametrize(
    ("value", "formula"),
    [
        (rolled, (Index.of(ROW) + 62) % 64),
        (lambda: kept_inside(counted_from_the_end(rolled(), 64), 64), (Index.of(ROW) + 62) % 64),
        (lambda: ops.sub(number(63), value_of(ROW)), Index.of(ROW) * -1 + 63),
        (lambda: counted_from_the_end(ops.sub(value_of(SHORT), number(3)), 3), Index.of(SHORT)),
        (lambda: ops.mul(number(5), ops.floordiv(value_of(ROW), number(4))), Index.of(ROW) // 4 * 5),
        (lambda: ops.fmod(value_of(ROW), number(7)), Index.of(ROW) % 7),
        (lambda: ops.truncdiv(ops.neg(value_of(ROW)), number(7)), None),
        (lambda: after_a_half(value_of(ROW)), None),
        (lambda: ops.abs(value_of(ROW)), None),
        (lambda: ops.load("x", Index.of(ROW), torch.int64), None),
        (lambda: ops.mul(value_of(ROW, torch.int32), number(2**30, torch.int32)), None),
    ],
)
def test_a_place_is_read_as_a_formula(value: Callable[[], Any], formula: Index | None) -> None:
    assert formula_of(value) == formula
