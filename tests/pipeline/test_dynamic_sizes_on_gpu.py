"""One compilation serves every size on a GPU too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from tests.pipeline.test_dynamic_sizes import (
    SIZES,
    Block,
    Program,
    assert_training_step_is_eagers,
    convolutions,
    every_program,
    rnd,
)

pytestmark = pytest.mark.gpu


def on_gpu(values: tuple[Any, ...]) -> list[Any]:
    return [value.cuda() if isinstance(value, Tensor) else value for value in values]


@every_program
def test_one_binary_serves_every_size(program: Program) -> None:
    built: list[Built] = []
    torch._dynamo.reset()
    compiled = torch.compile(program.function, backend=fusionscope, dynamic=True)
    with observed_compilations(built.append):
        for n in SIZES:
            inputs = on_gpu(program.inputs(n))
            torch.testing.assert_close(compiled(*inputs), program.function(*inputs), atol=1e-3, rtol=1e-3)
    assert len(built) == program.compilations


@pytest.mark.parametrize("name", ["transformer", "convolutions"])
def test_a_training_step_on_the_gpu(name: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = (Block() if name == "transformer" else convolutions()).cuda()
    compiled = torch.compile(module, backend=fusionscope, dynamic=True)
    for n in (6, 9, 5):
        x = (rnd(n, n + 1, 32) if name == "transformer" else rnd(n, 3, n + 4, n + 4)).cuda()
        assert_training_step_is_eagers(compiled, module, x, tolerance=1e-3)
