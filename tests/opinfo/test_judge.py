"""What judges the operators can itself be wrong: it must see what is wrong, and let rounding pass."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from bench.opinfo.judge import judge, judge_random
from bench.opinfo.packets import Met, functional, packets_report

NO_TOLERANCE = (0.0, 0.0)


def _judge(ours: Tensor, eager: Tensor, exact: Tensor | None = None) -> str | None:
    return judge([ours], [eager], lambda: [eager.double() if exact is None else exact], NO_TOLERANCE).problem


def test_rounding_passes_and_an_error_does_not() -> None:
    eager = torch.linspace(-3, 3, 101)
    assert _judge(eager * (1 + 1e-7), eager) is None
    assert _judge(eager * (1 + 1e-4), eager) is not None
    assert _judge(eager[:-1], eager) is not None
    assert _judge(eager.double(), eager) is not None
    assert _judge(torch.tensor([1, 2]), torch.tensor([1, 3])) is not None


def test_float64_decides_where_eager_lost_digits() -> None:
    eager, exact = torch.tensor([0.5], dtype=torch.bfloat16), torch.tensor([0.6], dtype=torch.float64)
    assert _judge(exact.bfloat16(), eager, exact) is None
    assert _judge(torch.tensor([0.57], dtype=torch.bfloat16), eager, exact) is None
    assert _judge(torch.tensor([0.8], dtype=torch.bfloat16), eager, exact) is not None


@pytest.mark.parametrize("ours", [0.0, math.nan, math.inf])
def test_a_nan_must_stand_where_eager_has_it(ours: float) -> None:
    wanted = torch.tensor([1.0, math.nan if ours == 0.0 else 2.0])
    assert _judge(torch.tensor([1.0, ours]), wanted) is not None


def _dropout(p: float, scale: float = 1.0) -> Callable[[], list[Tensor]]:
    x = torch.linspace(1, 2, 20)
    return lambda: [x * (torch.rand(20) > p) * scale / (1 - p)]


def test_distributions_are_told_apart() -> None:
    torch.manual_seed(0)
    assert judge_random(_dropout(0.5), _dropout(0.5)).problem is None
    assert judge_random(_dropout(0.5), _dropout(0.5, scale=1 + 1e-7)).problem is None
    assert judge_random(_dropout(0.2), _dropout(0.5)).problem is not None
    assert judge_random(_dropout(0.5, scale=1.01), _dropout(0.5)).problem is not None
    x = _dropout(0.5)()
    assert judge_random(lambda: x, _dropout(0.5)).problem is not None


def test_operators_in_place_count_as_their_functional_ones() -> None:
    assert [functional(name) for name in ("add_", "__iand__", "__and__", "add")] == ["add", "__and__", "__and__", "add"]
    met = Met()
    met.add({"add": None, "cumsum": "There is no lowering."}, "float32")
    report = packets_report(met)
    assert report["falls_back"] == {"cumsum": "There is no lowering."}
    assert report["lowered"] == 2
