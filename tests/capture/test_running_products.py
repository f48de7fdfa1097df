"""Gradients of running products, with each release of torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

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
