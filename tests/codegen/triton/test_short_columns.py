"""Few rows reduced together, and something stored or added for each of their elements: a lane goes over its column."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.compile_program import call_interpreted, compile_program

ROWS, COLUMNS, TABLE = 6, 40, 5


def of_three(dtype: torch.dtype = torch.float32) -> Tensor:
    """Few different numbers, so that the largest of three is often none alone."""
    return torch.randint(-3, 3, (ROWS, 3, COLUMNS)).to(dtype)


def largest(x: Tensor) -> tuple[Tensor, Tensor]:
    found = x.amax(1, keepdim=True)
    return found, x == found


def shares_of_the_largest(is_largest: Tensor, gradient: Tensor) -> Tensor:
    return gradient / is_largest.sum(1, keepdim=True) * is_largest


def turned(x: Tensor, y: Tensor) -> Tensor:
    """The parts of a concatenation differ from one element of a column to the next."""
    both = torch.cat((y, -x), 1)
    return both / (both.square().sum(1, keepdim=True) + 1).sqrt()


def added_to_rows(x: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.zeros(TABLE, COLUMNS).index_put((rows,), x * y[:, None], accumulate=True)
    return total, (x * y[:, None]).sum(1)


def counted(x: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
    """What is added, and where, is the same for all elements of a column."""
    places = (row[:, None, None].expand_as(x),)
    count = torch.zeros(TABLE, dtype=torch.int64).index_put(places, torch.ones((), dtype=torch.int64), accumulate=True)
    return (x * row[:, None, None]).sum(1), count


HALF = torch.bfloat16
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Tensor, ...]]]] = {
    "largest": (largest, lambda: (of_three(),)),
    "shares": (shares_of_the_largest, lambda: (of_three() > 0, torch.randn(ROWS, 1, COLUMNS))),
    "softmax": (lambda x: torch.softmax(x.float(), 1).to(x.dtype), lambda: (of_three(HALF),)),
    "exponentials kept": (lambda x: (y := x.exp(), y / y.sum(1, keepdim=True)), lambda: (of_three(),)),
    "concatenated": (turned, lambda: (of_three(), torch.randn(ROWS, 2, COLUMNS))),
    "added": (added_to_rows, lambda: (of_three(), torch.randint(TABLE, (ROWS, 3)), torch.randn(ROWS, COLUMNS))),
    "counted": (counted, lambda: (of_three(), torch.randint(TABLE, (ROWS,)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lane_stores_each_element_of_its_column(name: str) -> None:
    torch.manual_seed(0)
    function, make = PROGRAMS[name]
    inputs = make()
    compilation = compile_program(function, *inputs, disable=["batch"])
    assert all(kernel.config["plan"] == "pointwise" for kernel in compilation.triton.values())
    assert any("sum" in kernel or "amax" in kernel or "softmax" in kernel for kernel in compilation.triton)
    given = dict(zip(signature(function).parameters, inputs, strict=True))
    results = call_interpreted(compilation, [given[str(one)] for one in compilation.schedule.graph.inputs])
    wanted = function(*inputs)
    for result, one in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(result, one, equal_nan=True)
