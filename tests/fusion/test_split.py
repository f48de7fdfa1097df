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


def test_programs_that_share_a_long_sum_of_costly_elements_run_at_one_time() -> None:
    """Each has 65,536 registers of a multiprocessor, of which its warps take 256 at a time."""

    def apart(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.log1p(x) - torch.log1p(y)).square().mean()

    compilation = compile_program(apart, torch.empty(1 << 24), torch.empty(1 << 24))
    storage = {name: layout.dtype for name, layout in compilation.loops.buffers.items()}
    (kernel,) = compilation.triton.values()
    result = compile_offline(kernel, storage)
    assert kernel.config["plan"] == "split" and result.registers is not None
    of_a_warp = 32 * -(-result.registers // 8) * 8
    warps, splits = kernel.config["num_warps"], kernel.config["splits"]
    assert isinstance(warps, int) and isinstance(splits, int)
    assert splits <= 132 * (65536 // of_a_warp // warps)
