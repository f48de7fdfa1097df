"""What is evicted first from the cache, at the sizes of real use, on an H200: nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bench.fusion.count import schedules_of
from bench.fusion.program import Input, Program, tensor, weight
from compiler.codegen.rendered import RenderedKernel
from compiler.compile import generate

EVICT_FIRST = "evict_first"


def kernels_of(function: Callable[..., Any], *inputs: Input) -> list[RenderedKernel]:
    (compilation,) = schedules_of(Program("", function, inputs))
    return list(generate(compilation, True).triton.values())


def normalised(x: Tensor) -> Tensor:
    return x / x.square().sum().sqrt()


def test_what_nobody_reads_again_is_evicted_first() -> None:
    (alone,) = kernels_of(lambda x: x.square().sum(), tensor("8192 4096"))
    assert EVICT_FIRST in alone.source
    assert all(EVICT_FIRST not in kernel.source for kernel in kernels_of(normalised, tensor("8192 4096")))


def test_held_columns_are_evicted_first() -> None:
    (kernel,) = kernels_of(lambda x: torch.std_mean(x, 1), tensor("128 512 256"))
    assert EVICT_FIRST in kernel.source


def test_what_a_backward_graph_reads_stays_in_the_cache() -> None:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.mse_loss(x, y)

    forward, _ = schedules_of(Program("", loss, (weight("4096 4096"), tensor("4096 4096"))))
    assert all(EVICT_FIRST not in kernel.source for kernel in generate(forward, True).triton.values())
