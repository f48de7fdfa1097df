"""Positions, and what is read or counted by them, are eager's, however few bits and instructions they take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tests.compile_program import call_interpreted, compile_program

Tensor = torch.Tensor


def special() -> Tensor:
    """Rows with ties, NaN, nothing but -inf, and infinities."""
    x = torch.randn(7, 300).round()
    x[1, 40:60] = float("nan")
    x[2] = float("-inf")
    x[3] = float("inf")
    x[4, 7], x[4, 299] = 90.0, 90.0
    return x


def transparencies(a: Tensor) -> Tensor:
    return a * torch.cumprod(F.pad(1 - a[:, :-1], (1, 0), value=1.0), -1)


def turned(x: Tensor, c: Tensor) -> Tensor:
    """What the gradient of a rotary embedding reads: each half from the other one's place."""
    y = x * c
    return torch.cat((y[..., 4:], torch.zeros_like(y[..., :4])), -1) - F.pad(y[..., :4], (4, 0))


def differences(x: Tensor) -> Tensor:
    p = F.pad(x, (1, 1, 1, 1))
    return p[..., 2:, 2:] - 2 * p[..., 1:-1, :-2] + p[..., :-2, 1:-1]


def nearest(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    least = (x[:, None] - y[None]).square().sum(-1).min(1)
    return least.values, least.indices


def extremes(x: Tensor) -> tuple[Tensor, ...]:
    return (*x.max(-1), *x.min(0), x.argmax(-1), x.argmin(-1))


def ranks(x: Tensor) -> Tensor:
    return (x[:, None] < x[:, :, None]).sum(-1)


def stored_positions(x: Tensor) -> tuple[Tensor, Tensor]:
    place = torch.arange(x.shape[0], device=x.device) * 3 - 7
    return place, torch.where(place.abs() % 5 < 3, x, -x)


PROGRAMS: list[tuple[Callable[..., object], tuple[Tensor, ...]]] = [
    (transparencies, (torch.rand(9, 33),)),
    (turned, (torch.randn(3, 5, 8), torch.randn(5, 8))),
    (differences, (torch.randn(2, 9, 13),)),
    (nearest, (torch.randn(5, 3), torch.randn(2100, 3).round())),
    (extremes, (special(),)),
    (ranks, (torch.randn(6, 40).round(),)),
    (stored_positions, (torch.randn(50),)),
]


@pytest.mark.parametrize(("program", "inputs"), PROGRAMS, ids=[program.__name__ for program, _ in PROGRAMS])
def test_programs_with_positions_give_what_eager_gives(
    program: Callable[..., object], inputs: tuple[Tensor, ...]
) -> None:
    expected = program(*inputs)
    got = call_interpreted(compile_program(program, *inputs), inputs)
    for mine, wanted in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert mine.dtype == wanted.dtype
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
