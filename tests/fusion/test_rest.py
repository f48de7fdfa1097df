"""Rows a little longer than a power of two: the last elements are written out, and the results are those of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.runtime.checking.verify import relative_error
from tests.compile_program import call_interpreted, compile_program

CASES: dict[str, tuple[Callable[..., Any], int, int]] = {
    "layer norm": (lambda x: F.layer_norm(x + 9, x.shape[-1:]), 33, 32),
    "softmax, and other results": (lambda x: (F.softmax(x, -1), x.amax(-1), x.sum(-1)), 258, 256),
    "truth": (lambda x: (x > 3).any(-1, keepdim=True) * x, 65, 64),
    "more elements than are written out": (lambda x: F.softmax(x, -1), 34, 64),
    "a position": (lambda x: (x.argmax(-1), x - x.amax(-1, keepdim=True)), 33, 64),
    "random numbers": (lambda x: F.softmax(x, -1) * (torch.rand_like(x) > 2), 33, 64),
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_elements_of_a_row_are_written_out(name: str) -> None:
    function, length, block = CASES[name]
    x = torch.randn(20, length, generator=torch.Generator().manual_seed(length))
    compilation = compile_program(function, x)
    (kernel,) = compilation.triton.values()
    assert kernel.config["RBLOCK"] == block
    exact, eager = function(x.double()), function(x)
    as_list = lambda found: list(found) if isinstance(found, tuple) else [found]  # noqa: E731
    bound = 3 * relative_error(as_list(eager), as_list(exact)) + 8 * torch.finfo(torch.float32).eps
    assert relative_error(call_interpreted(compilation, [x]), as_list(exact)) <= bound
