"""Gradients of products by imaginary numbers, for which autograd conjugates a Python number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import compiler.backend  # noqa: F401 - it makes the backend known
from compiler.options import Options, Timing
from compiler.pipeline import explore

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "turned": lambda x: torch.exp(1j * x).real,
    "a real part": lambda x: (2j * x * x).imag,
    "a complex input": lambda x: (torch.complex(x, x * 2).conj() - 1j * torch.complex(x, x).imag).abs(),
    "no dims": lambda x: (torch.complex(x.detach(), x.detach() + 1) * (-1j * x[3:4].sum())).imag,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_eager(name: str) -> None:
    x = torch.linspace(-1.0, 1.0, 7)
    gradients = []
    for function in (torch.compile(FUNCTIONS[name], backend="fusionscope"), FUNCTIONS[name]):
        leaf = x.clone().requires_grad_()
        function(leaf).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


def test_an_exploration_checks_them() -> None:
    report = explore(
        "import torch\n@torch.compile\ndef f(x):\n    return torch.exp(1j * x).real.sum()\n"
        "f(torch.ones(5, requires_grad=True)).backward()\n",
        Options(device="cpu", timing=Timing(enabled=False)),
    )
    assert report.status == "ok" and report.gradients and not report.notes
