"""Reductions of rows in the lanes of a vector, which are joined behind the loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.compile import build
from compiler.runtime.cpp.instruction_sets import SETTING, runnable
from tests.compile_program import compile_program

PROGRAMS: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "rows of whole vectors": (lambda x: x.square().sum(-1), (300, 64)),
    "rows with a rest": (lambda x: (x[:, None] - x[None, :40]).abs().sum(-1), (70, 101)),
    "two sums at a time": (lambda x: (x.sum(-1), (x * x).mean(-1)), (9, 7, 128)),
    "groups of channels": (lambda x: torch.var_mean(x.unflatten(-1, (6, 8)), (1, 3)), (3, 700, 48)),
    "groups of ten channels": (lambda x: x.unflatten(-1, (5, 10)).exp().sum((1, 3)), (3, 77, 50)),
    "more channels than lanes": (lambda x: x.unflatten(-1, (2, 70)).sum((1, 3)), (3, 50, 140)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_sums_in_lanes_take_every_element_once(dtype: torch.dtype) -> None:
    in_lanes = 0
    for function, shape in PROGRAMS.values():
        x = torch.randn(shape).to(dtype)
        compilation = compile_program(function, x, target="cpu")
        results, exact = build(compilation).executable.call([x]), function(x.double())
        for result, wanted in zip(results, exact if isinstance(exact, tuple) else (exact,), strict=True):
            rounding = torch.finfo(dtype).eps
            torch.testing.assert_close(result.double(), wanted.double(), rtol=32 * rounding, atol=256 * rounding)
        in_lanes += any("fs::add_lanes" in kernel.source for kernel in compilation.cpp.values())
    assert in_lanes >= 4


LONG: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "one long row in chunks": (lambda x: x.sum(), (100_003,)),
    "a mean relative to which squares are summed": (lambda x: torch.var_mean(x, -1), (3, 9001)),
    "softmax": (lambda x: x.softmax(-1), (40, 1003)),
    "log of the sum of exponentials": (lambda x: x.logsumexp(-1), (5, 5003)),
    "the largest, with zeros of both signs": (lambda x: (x.relu() * -1).amax(-1), (9, 333)),
    "products": (lambda x: (1 + x / 64).prod(-1), (9, 1003)),
    "a row of two pieces": (lambda x: torch.nn.functional.pad(x, (3, 70)).exp().sum(-1), (9, 301)),
    "across rows as well": (lambda x: (x.softmax(-1), x.softmax(-1).sum()), (300, 70)),
    "across columns as well": (lambda x: (x.square().sum(-2), (x * x.sign()).mean()), (3, 300, 70)),
    "a normalised image": (lambda x: torch.nn.functional.group_norm(x, 4), (2, 16, 7, 9)),
    "running sums": (lambda x: x.cumsum(-1), (4, 1003)),
}


def all_of_them(*inputs: Tensor) -> list[Tensor]:
    results = [function(x) for (function, _), x in zip(LONG.values(), inputs, strict=True)]
    return [tensor for one in results for tensor in (one if isinstance(one, tuple) else (one,))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_results_have_the_same_bits_at_every_level(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [torch.randn(shape).to(dtype) for _, shape in LONG.values()]
    compilation = compile_program(all_of_them, *inputs, target="cpu")
    by_level = []
    for level in runnable():
        monkeypatch.setenv(SETTING, level)
        by_level.append([_bits(result.clone()) for result in build(compilation).executable.call(list(inputs))])
    for others in by_level[1:]:
        assert all(map(torch.equal, others, by_level[0]))


def _bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def test_a_product_may_be_too_large_on_its_way() -> None:
    x = torch.ones(383)
    x[0:192:32], x[17:192:32] = 1e30, 1e-30  # of two lanes
    (found,) = build(compile_program(lambda x: x.prod(), x, target="cpu")).executable.call([x])
    torch.testing.assert_close(found.double(), x.double().prod(), rtol=1e-5, atol=0.0)


def test_a_scan_that_is_read_by_sums_has_a_loop_without_them() -> None:
    x = torch.randn(7, 1003)
    compilation = compile_program(lambda x: x.cumsum(-1).softmax(-1).cumsum(-1), x, target="cpu")
    (kernel,) = compilation.primary.values()
    passes = [text.partition("\n")[0].partition(": ")[2] for text in kernel.source.split("// Pass ")[1:]]
    assert [text.rstrip(".") for text in passes][:3] == ["running sum", "max", "sum"]
    (result,) = build(compilation).executable.call([x])
    expected = x.double().cumsum(-1).softmax(-1).cumsum(-1)
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-6)
