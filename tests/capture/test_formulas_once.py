"""Sizes that are open are computed with as torch does it; and what was computed or checked before is not again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from compiler.capture.shortcuts.formulas_once import formulas_once

Operation = Callable[[Any, Any], Any]
OPERATIONS: list[Operation] = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge, torch.sym_max, torch.sym_min,
]  # fmt: skip


@pytest.fixture
def mode() -> Iterator[FakeTensorMode]:
    yield FakeTensorMode(shape_env=ShapeEnv())


def open_tensor(mode: FakeTensorMode, *shape: int) -> Tensor:
    context: StatelessSymbolicContext[Any, Any] = StatelessSymbolicContext([DimDynamic.DYNAMIC] * len(shape))
    return mode.from_tensor(torch.empty(shape), symbolic_context=context)


def open_sizes(mode: FakeTensorMode) -> tuple[Any, Any]:
    one, other = open_tensor(mode, 6, 4).shape
    return one, other


def told(value: Any) -> Any:
    """All that is known of a number, but for which object it is."""
    if isinstance(value, SymInt | torch.SymBool):
        node = value.node
        return type(value), node.expr, node.hint, node.pytype, node._optimized_summation, node.maybe_as_int()
    return value


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_numbers_are_torchs(operation: Operation, mode: FakeTensorMode) -> None:
    one, other = open_sizes(mode)
    operands = [one, other, one * other, one + 1, 2 * other, one + other, 6, 1]
    seconds = operands if operation in (operator.mod, operator.floordiv) else [*operands, 0]
    pairs = [(a, b) for a in operands for b in seconds]
    expected = [told(operation(a, b)) for a, b in pairs]
    with formulas_once():
        for _ in range(2):
            assert [told(operation(a, b)) for a, b in pairs] == expected
        again = [operation(one, other), operation(one, other)]
    assert again[0].node is not again[1].node, "tracers tell numbers apart by their nodes"


def test_numbers_follow_what_guards_have_told_since(mode: FakeTensorMode) -> None:
    one, other = open_sizes(mode)
    with formulas_once():
        assert (one * 2).node.maybe_as_int() is None
        assert one == 6
        assert (one * 2).node.maybe_as_int() == 12 and (one * other).node.expr == 6 * other.node.expr
