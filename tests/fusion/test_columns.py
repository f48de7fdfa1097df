"""Columns that a program holds: neighbours in memory are different rows, and each element is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.runtime.verify import relative_error
from tests.compile_program import bytes_moved, call_interpreted, compile_program

Tensor = torch.Tensor


def channel_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    d = x - x.mean(1, keepdim=True)
    return w[:, None, None] * d * torch.rsqrt(d.square().mean(1, keepdim=True) + 1e-6) + b[:, None, None]


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "channel norm": (channel_norm, (rnd(3, 150, 9, 5) + 10, rnd(150), rnd(150))),
    "softmax of the middle": (lambda x: torch.softmax(x, 1), (rnd(2, 300, 70).bfloat16(),)),
    "unit columns": (lambda x: torch.nn.functional.normalize(x, dim=0), (rnd(200, 33),)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_element_is_read_once_and_results_are_as_good_as_eager(name: str) -> None:
    function, inputs = CASES[name]
    compilation = compile_program(function, *inputs)
    assert [kernel.config["plan"] for kernel in compilation.triton.values()] == ["persistent"]
    result = function(*inputs)
    assert bytes_moved(compilation) == sum(x.numel() * x.element_size() for x in (*inputs, result))
    exact = function(*[x.double() for x in inputs])
    bound = 3 * relative_error([result], [exact]) + 64 * torch.finfo(torch.float32).eps
    assert relative_error(call_interpreted(compilation, inputs), [exact]) <= bound
