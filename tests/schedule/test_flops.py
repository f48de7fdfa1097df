"""Floating-point operations, counted by hand beside what the report says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.present import present_kernels
from tests.compile_program import compile_program

ROWS, COLUMNS = 64, 96


def flops(function: Callable[..., Any], *inputs: torch.Tensor, **knobs: Any) -> list[int | None]:
    return [kernel.flops for kernel in present_kernels(compile_program(function, *inputs, **knobs))]


def x() -> torch.Tensor:
    return torch.randn(ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("function", "of_an_element"),
    [
        (lambda x: x * 2 + 1, 2),
        (lambda x: torch.sin(x) * x, 2),
        (lambda x: torch.where(x > 0, x, 0), 0),
        (lambda x: x.softmax(-1), 5),  # maximum, subtraction, exponential, sum, division
    ],
)
def test_each_operation_of_an_element_is_one(function: Callable[..., Any], of_an_element: int) -> None:
    assert flops(function, x()) == [of_an_element * ROWS * COLUMNS]


def test_what_comes_after_a_reduction_counts_once_a_row() -> None:
    assert flops(lambda x: x.sum(-1) * 3, x()) == [ROWS * COLUMNS + ROWS]


def test_integers_are_no_floating_point_operations() -> None:
    assert flops(lambda x: x * 2 + 1, torch.arange(ROWS)) == [0]


def test_a_product_is_two_for_each_pair() -> None:
    """By the library, and as a kernel with what is fused to it."""
    weights = torch.randn(COLUMNS, 32)
    assert sum(count or 0 for count in flops(lambda x, w: x @ w, x(), weights)) == 2 * ROWS * COLUMNS * 32
    added = flops(lambda x, w: torch.sin(x @ w), x(), weights)
    assert sum(count or 0 for count in added) == 2 * ROWS * COLUMNS * 32 + ROWS * 32


def test_a_call_without_a_formula_is_not_counted() -> None:
    assert flops(lambda x: torch.linalg.qr(x)[1], x())[0] is None
