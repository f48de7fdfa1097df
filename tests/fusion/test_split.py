"""A long reduction is shared among programs also where each element is stored on the way."""

from __future__ import annotations

import torch

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
    for results in (compilation.build().call([x]), call_interpreted(compilation, [x])):
        torch.testing.assert_close(results, list(function(x)), rtol=1e-5, atol=1e-5)
