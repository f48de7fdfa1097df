"""Uniform numbers: four in a row are the words of one Philox draw, however a kernel's lanes lie along them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.ir import interpret
from tests.compile_program import call_interpreted, compile_program


def by_one(x: Tensor) -> Tensor:
    return torch.rand_like(x) + x


def transposed(x: Tensor) -> Tensor:
    return (torch.rand_like(x) + x).t().contiguous()


def behind_a_softmax(x: Tensor) -> Tensor:
    return F.softmax(x, -1) * torch.rand_like(x)


def summed_over_rows(x: Tensor) -> Tensor:
    return (torch.rand_like(x) + x).sum(0)


def a_part(x: Tensor) -> Tensor:
    return torch.rand(x.shape[0], x.shape[1] + 2)[:, 2:] + x


@pytest.mark.parametrize(
    "function, shape, is_by_fours",
    [
        (by_one, (64, 96), True),
        (by_one, (7, 33), True),
        (by_one, (2,), False),
        (transposed, (64, 64), None),
        (behind_a_softmax, (5, 64), True),
        (behind_a_softmax, (5, 66), False),
        (behind_a_softmax, (2, 5000), None),
        (summed_over_rows, (40, 64), None),
        (summed_over_rows, (9000, 2), None),
        (a_part, (6, 62), None),
    ],
)
def test_every_kernel_draws_the_numbers_of_the_loop_ir(
    function: Callable[[Tensor], Tensor], shape: tuple[int, ...], is_by_fours: bool | None
) -> None:
    x = torch.randn(shape)
    compilation = compile_program(function, x)
    texts = "".join(kernel.source for kernel in compilation.triton.values())
    assert is_by_fours is None or ("uniform_by_fours(seeds" in texts) is is_by_fours
    assert compilation.loops is not None
    runs = []
    for run in (lambda: interpret.run(compilation.loops, [x]), lambda: call_interpreted(compilation, [x])):
        torch.manual_seed(7)
        runs.append(run()[0])
    torch.manual_seed(7)
    runs.append(compilation.build().call([x])[0])
    for ours in runs[1:]:
        torch.testing.assert_close(ours, runs[0], rtol=1e-4, atol=1e-4)
