"""Graphs with tensors of a CPU beside those of a GPU: each result lies where eager mode puts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope

pytestmark = pytest.mark.gpu

PLACES = torch.tensor([[2, 0, 1], [1, 1, 0]])


def positions(x: Tensor) -> tuple[Tensor, Tensor]:
    """A range that eager computes on the CPU, read on both."""
    steps = torch.arange(3)
    return x[steps], steps * 2


def with_constant(x: Tensor) -> Tensor:
    return x[PLACES.view(-1)].sum(0)


def scalar(x: Tensor) -> Tensor:
    return x * torch.tensor(2.5) + torch.tensor([1.0, 2.0, 3.0, 4.0]).to(x.device)


def there_and_back(x: Tensor) -> tuple[Tensor, Tensor]:
    on_cpu = (x * 2).cpu() + 1
    return on_cpu, on_cpu.to(x.device) * 3


def sorted_elsewhere(x: Tensor) -> Tensor:
    order = torch.argsort(torch.linspace(1, 0, 5))
    return x[order] + 1


@pytest.mark.parametrize("function", [positions, with_constant, scalar, there_and_back, sorted_elsewhere])
def test_tensors_of_two_devices(function: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    x = torch.randn(5, 4, device="cuda")
    ours, eager = torch.compile(function, backend=fusionscope)(x), function(x)
    pairs = zip(ours, eager, strict=True) if isinstance(eager, tuple) else [(ours, eager)]
    for mine, theirs in pairs:
        assert mine.device.type == theirs.device.type
        torch.testing.assert_close(mine, theirs)


def test_an_input_on_the_cpu_is_an_index() -> None:
    torch._dynamo.reset()
    x, places = torch.randn(5, 4, device="cuda"), torch.tensor([3, 1, 1])
    compiled = torch.compile(lambda x, places: (x[places] * 2, places + 1), backend=fusionscope)
    for mine, theirs in zip(compiled(x, places), (x[places] * 2, places + 1), strict=True):
        assert mine.device.type == theirs.device.type
        torch.testing.assert_close(mine, theirs)
