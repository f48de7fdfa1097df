"""16-bit floats on a CPU: rows that are converted apart from a loop, and elements that are gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.compile import build
from tests.compile_program import compile_program

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "blocks and what is left of them": lambda x, y: (F.gelu(x) * y).flatten(),
    "rows": lambda x, y: (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * y).softmax(-1),
    "columns": lambda x, y: (x * y).softmax(0),
    "sums of both kinds": lambda x, y: (x.exp().sum(0), (x + y).float()),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_rows_are_converted_as_eager_converts(dtype: torch.dtype) -> None:
    x, y = torch.randn(5, 1301).to(dtype), torch.randn(5, 1301).to(dtype)
    for function in PROGRAMS.values():
        compilation = compile_program(function, x, y, target="cpu")
        results = build(compilation).executable.call([x, y])
        exact = function(x.double(), y.double())
        for result, wanted in zip(results, exact if isinstance(exact, tuple) else (exact,), strict=True):
            torch.testing.assert_close(result.double(), wanted.double(), rtol=8 * torch.finfo(dtype).eps, atol=1e-3)


@pytest.mark.parametrize("columns", [4096, 5001])
def test_long_rows_of_several_passes_are_converted_in_blocks(columns: int) -> None:
    """A whole row of each would not stay in the first-level cache."""

    def normed(x: Tensor, weight: Tensor) -> Tensor:
        return F.gelu(F.layer_norm(x, (columns,), weight))

    x, weight = torch.randn(70, columns).bfloat16(), torch.randn(columns).bfloat16()
    compilation = compile_program(normed, x, weight, target="cpu")
    (kernel,) = compilation.cpp.values()
    assert "float x_wide[256];" in kernel.source
    exact = normed(x.double(), weight.double())
    torch.testing.assert_close(
        build(compilation).executable.call([x, weight])[0].double(), exact, rtol=8 * torch.finfo(x.dtype).eps, atol=1e-3
    )


def test_a_long_row_whose_condition_changes_on_its_way_is_cut_there() -> None:
    def padded(x: Tensor) -> Tensor:
        longer = F.pad(x, (100, 0))
        return torch.exp(longer - longer.float().mean(-1, keepdim=True).bfloat16())

    x = torch.randn(70, 9000).bfloat16()
    compilation = compile_program(padded, x, target="cpu")
    torch.testing.assert_close(build(compilation).executable.call([x])[0], padded(x), rtol=0.02, atol=0.02)


def test_every_float_is_converted_to_the_nearest() -> None:
    bits = torch.arange(0, 1 << 16, dtype=torch.int32).to(torch.int16)
    every, floats = bits.view(torch.float16), torch.randn(20_000) * torch.logspace(-9, 6, 20_000)
    compilation = compile_program(
        lambda h, f: (h * h.new_ones(1), f.half() + 0 * f.half()), every, floats, target="cpu"
    )
    same, rounded = build(compilation).executable.call([every, floats])
    assert torch.equal(same.nan_to_num(0.5), every.nan_to_num(0.5))
    assert torch.equal(rounded, floats.half())


@pytest.mark.parametrize("start", [0, 1])
def test_elements_are_gathered_wherever_the_memory_begins(start: int) -> None:
    table, places = torch.randn(1001).bfloat16()[start : start + 1000], torch.randint(0, 1000, (3, 333))
    places[0, 0], places[0, 1] = 0, 999
    compilation = compile_program(lambda t, i: t[i] * 2.0, table, places, target="cpu")
    (kernel,) = compilation.cpp.values()
    assert "fs::gathered(" in kernel.source
    assert torch.equal(build(compilation).executable.call([table, places])[0], table[places] * 2.0)


def test_rows_that_a_loop_inside_chooses_are_not_converted_before_it() -> None:
    """Three numbers lie side by side, so vectors go along the loop around, where each of them has a row of its own."""
    x, y = torch.randn(3, 40).bfloat16().mT, torch.randn(40, 40, 3)
    compilation = compile_program(lambda x, y: torch.exp(x * y), x, y, target="cpu")
    torch.testing.assert_close(build(compilation).executable.call([x, y])[0], torch.exp(x * y))
