"""Sums of short rows in the lanes of a vector, which are joined behind the loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

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
        results, exact = compilation.build().call([x]), function(x.double())
        for result, wanted in zip(results, exact if isinstance(exact, tuple) else (exact,), strict=True):
            rounding = torch.finfo(dtype).eps
            torch.testing.assert_close(result.double(), wanted.double(), rtol=32 * rounding, atol=256 * rounding)
        in_lanes += any("fs::sum_of_lanes" in kernel.source for kernel in compilation.cpp.values())
    assert in_lanes >= 4
