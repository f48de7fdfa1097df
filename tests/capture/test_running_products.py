"""Gradients of running products, with each release of torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from compiler.capture.autograd.running_products import gradient_of_running_product


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("dim", [0, -1])
def test_the_gradient_is_eagers_wherever_zeros_are(dtype: torch.dtype, dim: int) -> None:
    torch.manual_seed(0)
    for _ in range(20):
        x = torch.randint(-2, 3, (4, 6)).to(dtype)
        if dtype.is_complex:
            x = torch.complex(x.real, torch.randint(-1, 2, (4, 6)).double())
        x.requires_grad_()
        y = x.cumprod(dim)
        gradient = torch.randn_like(y)
        (expected,) = torch.autograd.grad(y, x, gradient)
        ours = gradient_of_running_product(gradient, x.detach(), y.detach(), dim)
        torch.testing.assert_close(ours, expected)


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "after another": lambda x: x.cumprod(0).cumprod(-1),
    "in place": lambda x: (x * 2).cumprod_(1),
    "of a gradient": lambda x: torch.func.grad(lambda z: z.cumprod(0).sin().sum())(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_gradients_are_eagers(name: str) -> None:
    torch._dynamo.reset()
    x = torch.randint(-2, 3, (5, 7), generator=torch.Generator().manual_seed(0)).double()
    results = []
    for function in (PROGRAMS[name], torch.compile(PROGRAMS[name], backend="fusionscope")):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        result.sum().backward()
        results.append((result.detach(), leaf.grad))
    torch.testing.assert_close(results[1], results[0])
