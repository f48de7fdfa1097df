"""A long reduction is shared among programs also where each element is stored on the way."""

from __future__ import annotations

import torch

from compiler.compile import build
from compiler.runtime.triton.offline import compile_offline
from tests.compile_program import call_interpreted, compile_program, kernel_count


def test_elements_and_their_sum_are_one_split_kernel() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.exp()
        return y, y.sum()

    x = torch.randn(300_001, generator=torch.Generator().manual_seed(0))
    compilation = compile_program(function, x)
    assert kernel_count(compilation) == (1, 0)
    (kernel,) = compilation.triton.values()
    assert kernel.config["plan"] == "split"
    for results in (build(compilation).executable.call([x]), call_interpreted(compilation, [x])):
        torch.testing.assert_close(results, list(function(x)), rtol=1e-5, atol=1e-5)


def test_the_parts_of_many_columns_fit_the_registers_of_the_program_that_joins_them() -> None:
    def moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.var_mean(x, (0, 2, 3))

    x = torch.empty(32, 64, 56, 56, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    compilation = compile_program(moments, x)
    storage = {name: layout.dtype for name, layout in compilation.loops.buffers.items()}
    (kernel,) = compilation.triton.values()
    assert kernel.config["plan"] == "split"
    result = compile_offline(kernel, storage)
    assert result.error is None and result.spills == 0
