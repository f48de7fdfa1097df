"""What the interpreter does not check: kernels whose programs meet, and batches, compile for GPUs, without spills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from bench.fusion.count import schedules_of
from bench.fusion.table import PROGRAMS
from compiler.compile import Generated, generate
from compiler.devices import device_for
from tests.compile_program import compile_program, compiled_for_gpus
from tests.fusion.test_across import CASES, layer_norm_backward
from tests.fusion.test_batch import CASES as BATCHES

SMALL: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    **{case.name: (case.function, case.inputs) for case in CASES},
    **BATCHES,
}
LARGE = (
    "largest over three axes",
    "cross entropy",
    "layer norm, backward",
    "distillation",
    "q, k and v split into heads",
)


def assert_compiles(compilation: Generated) -> None:
    assert all(result.spills == 0 for result in compiled_for_gpus(compilation))


@pytest.mark.parametrize("name", SMALL)
def test_small_ones(name: str) -> None:
    function, inputs = SMALL[name]
    assert_compiles(compile_program(function, *inputs))


@pytest.mark.parametrize("name", LARGE)
def test_those_of_real_sizes(name: str) -> None:
    for compilation in schedules_of(PROGRAMS[name]):
        assert_compiles(generate(compilation, wants_triton=True))


def test_parts_of_teams_beyond_31_bits() -> None:
    """The gradients of a layer norm of 2^32 elements: parts are joined by teams, and all offsets have 64 bits."""
    x = torch.empty(2**22, 1024, dtype=torch.bfloat16)
    compilation = compile_program(layer_norm_backward, x, x, torch.empty(1024, dtype=torch.bfloat16))
    assert any("team = " in kernel.source and "int64" in kernel.source for kernel in compilation.triton.values())
    assert_compiles(compilation)


@pytest.mark.parametrize("columns", [300, 1024, 2560, 5000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_lie_side_by_side_fit_a_program(columns: int, dtype: torch.dtype) -> None:
    """Both directions of a matrix whose columns are contiguous: sums for each r are held, and as few rows beside each
    other as the registers have room for."""
    x, device = torch.empty(columns, 4096, dtype=dtype).t(), device_for("sm_90")
    both = (lambda x: (torch.softmax(x, -1), torch.softmax(x, -1).sum(0)), (x,))
    weight, lying = torch.empty(columns, dtype=dtype), torch.empty(4096, columns, dtype=dtype)
    gradients, of_both = ((layer_norm_backward, (one, x, weight)) for one in (x, lying))
    for function, inputs in (both, gradients, of_both):
        compilation = compile_program(function, *inputs)
        for kernel, result in zip(compilation.triton.values(), compiled_for_gpus(compilation), strict=True):
            assert 32 * int(str(kernel.config["num_warps"])) <= device.threads_per_block
            assert result.shared_bytes is not None and result.shared_bytes <= device.shared_per_multiprocessor
            assert result.spills is not None and result.spills <= 1024, kernel.name
