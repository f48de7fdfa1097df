"""Comparisons of half types within a kernel are those of the numbers that eager has in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.compile import build
from compiler.ir import interpret
from tests.compile_program import call_interpreted, compile_program

HALF_TYPES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALF_TYPES)
@pytest.mark.parametrize("compare", [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge])
def test_what_is_computed_in_the_kernel_is_compared_as_rounded(
    compare: Callable[[Any, Any], Tensor], dtype: torch.dtype
) -> None:
    """In C++, in Triton and by the interpreter of loops; beside a tensor of its dtype, a wider one, and a number."""
    number = float(torch.tensor(1.1, dtype=dtype))

    def program(x: Tensor, rounded: Tensor) -> tuple[Tensor, ...]:
        computed = x * 1.7
        return (
            compare(computed, rounded),
            compare(rounded.float(), computed),
            torch.eq(x * 1.1, number),
            torch.ne(x * 1.1, number),
        )

    x = torch.cat([torch.randn(4093, generator=torch.Generator().manual_seed(0)), torch.ones(3)]).to(dtype)
    inputs = [x, x * 1.7]
    compilation = compile_program(program, *inputs)
    expected = program(*inputs)
    for results in (
        interpret.run(compilation.loops, inputs),
        build(compilation).executable.call(list(inputs)),
        call_interpreted(compilation, list(inputs)),
    ):
        for result, wanted in zip(results, expected, strict=True):
            assert torch.equal(result, wanted)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_a_maximum_at_computed_indices_has_a_gradient(dtype: torch.dtype) -> None:
    """It goes to the elements that equal the maximum, divided by their number."""
    place = torch.tensor([0, 1, 2, 0, 1, 2])[:, None].expand(6, 2)

    def program(x: Tensor) -> Tensor:
        return torch.full((3, 2), -1e4, dtype=dtype).scatter_reduce(0, place, x * 1.7, "amax")

    torch._dynamo.reset()
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0)).to(dtype)
    given, wanted = (x.clone().requires_grad_() for _ in range(2))
    torch.compile(program, backend="fusionscope")(given).sum().backward()
    program(wanted).sum().backward()
    assert given.grad is not None and wanted.grad is not None
    assert torch.equal(given.grad, wanted.grad)


def largest_of_rows(y: Tensor) -> Tensor:
    return y.amax(-1)


def norm_of_rows(y: Tensor) -> Tensor:
    return torch.linalg.vector_norm(y, float("inf"), dim=-1)


def smallest_at_indices(y: Tensor) -> Tensor:
    return torch.full((1, 40), 1e4, dtype=y.dtype).index_reduce(0, torch.zeros(24, dtype=torch.int64), y.mT, "amin")[0]


@pytest.mark.parametrize("dtype", HALF_TYPES)
@pytest.mark.parametrize("extreme", [largest_of_rows, norm_of_rows, smallest_at_indices])
def test_the_gradient_of_an_extreme_goes_to_what_equals_it(
    extreme: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    """Also where the backward pass could compute the elements again, from what was rounded when it was stored."""

    def program(x: Tensor, factor: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        stored = torch.tanh(x * factor)
        return stored, extreme(torch.sigmoid(factor * stored) + shift)

    torch._dynamo.reset()
    x, factor = torch.randn(2, 40, 24, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    shift = torch.zeros(40, 24, dtype=dtype, requires_grad=True)
    _, result = torch.compile(program, backend="fusionscope")(x, factor, shift)
    (gradient,) = torch.autograd.grad(result, shift, torch.ones_like(result))
    torch.testing.assert_close(gradient.double().sum(-1), torch.ones(40).double(), rtol=0, atol=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_the_gradient_of_an_extreme_of_float32_that_half_types_were_converted_to(dtype: torch.dtype) -> None:
    """The half type is rounded when it is stored, and the kernel that finds the extreme has it as it was computed."""

    def program(x: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        stored = x * factor
        return (stored.float() * factor.float()).amax(0), stored

    torch._dynamo.reset()
    inputs = [v.to(dtype).requires_grad_() for v in torch.randn(2, 40, 24, generator=torch.Generator().manual_seed(0))]
    found, wanted = (
        torch.autograd.grad(function(*inputs)[0].sum(), inputs)
        for function in (torch.compile(program, backend="fusionscope"), program)
    )
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one != 0, other != 0)
        torch.testing.assert_close(one, other, rtol=4 * torch.finfo(dtype).eps, atol=0)
