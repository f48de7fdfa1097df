"""Columns that a program holds: neighbours in memory are different rows, and each element is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.backend import fusionscope
from compiler.runtime.checking.verify import relative_error
from tests.compile_program import bytes_moved, call_interpreted, compile_program
from tests.fusion.test_cooperative import as_list

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


#: Many columns, few of them, long ones that several programs share or a few large ones go over, and odd ends of all.
LARGE: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Tensor, ...]]]] = {
    "channel norm of images": (channel_norm, lambda: (rnd(8, 256, 56, 56) + 10, rnd(256), rnd(256))),
    "unit columns of a matrix": (lambda x: torch.nn.functional.normalize(x, dim=0), lambda: (rnd(1000, 3001),)),
    "softmax of long columns": (lambda x: torch.softmax(x, 0), lambda: (rnd(9001, 4100).bfloat16(),)),
    "variance of shared columns": (lambda x: torch.var_mean(x, 0), lambda: (rnd(65536, 200) + 100,)),
    "variance of columns with an end": (lambda x: torch.var_mean(x, 0), lambda: (rnd(60001, 200) + 100,)),
    "sum of half types": (lambda x: x.sum(0), lambda: (rnd(32768, 1030).bfloat16(),)),
    "mean deviation": (lambda x: x.std(0).mean(), lambda: (rnd(64, 130001),)),
    "positions": (lambda x: x.argmin(1), lambda: (rnd(20, 512, 301),)),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*CASES, *LARGE])
def test_columns_on_a_gpu(name: str) -> None:
    function, inputs = CASES[name] if name in CASES else (LARGE[name][0], LARGE[name][1]())
    torch._dynamo.reset()
    on_gpu = [x.cuda() for x in inputs]
    exact, eager = as_list(function(*[x.double() for x in on_gpu])), as_list(function(*on_gpu))
    found = as_list(torch.compile(function, backend=fusionscope)(*on_gpu))
    assert relative_error(found, exact) <= 3 * relative_error(eager, exact) + 64 * torch.finfo(torch.float32).eps
