"""Kernels that differ in names alone are one function, which Triton compiles once."""

from __future__ import annotations

from collections.abc import Callable

import torch

from compiler.codegen.rendered import RenderedKernel
from compiler.runtime.triton.source import forget_kernels, shared_function
from tests.compile_program import compile_program

Tensor = torch.Tensor


def layers(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    x = torch.softmax(torch.relu(x @ first), -1)
    return torch.softmax(torch.relu(x @ second), -1)


def kernels_of(function: Callable[..., Tensor], *inputs: Tensor) -> list[RenderedKernel]:
    return list(compile_program(function, *inputs).triton.values())


def test_equal_layers_share_their_functions() -> None:
    kernels = kernels_of(layers, torch.randn(32, 64), torch.randn(64, 64), torch.randn(64, 64))
    assert len({kernel.source for kernel in kernels}) == len(kernels) == 2
    assert len({id(shared_function(kernel)) for kernel in kernels}) == 1


def test_what_computes_something_else_is_another_function() -> None:
    x = torch.randn(32, 64)
    (twice,), (thrice,) = (kernels_of(lambda x, n=n: torch.sin(x) * n, x) for n in (2, 3))
    (swapped,) = kernels_of(lambda x, y: torch.sin(x) - y, x, x + 1)
    (other,) = kernels_of(lambda x, y: y - torch.sin(x), x, x + 1)
    assert len({id(shared_function(kernel)) for kernel in (twice, thrice, swapped, other)}) == 4


def test_forgotten_kernels_are_made_anew() -> None:
    (kernel,) = kernels_of(torch.sin, torch.randn(32, 64))
    before = shared_function(kernel)
    assert shared_function(kernel) is before
    forget_kernels()
    assert shared_function(kernel) is not before
