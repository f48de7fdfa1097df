"""Snippets that set torch's default dtype: what was captured under it is lowered, run, checked and timed under it."""

from __future__ import annotations

import pytest
import torch

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report

BODIES = {
    "a tensor of no named dtype": "x @ torch.eye(4)",
    "a number beside a float32": "(x / 3).float() + torch.full((4,), 0.1)",
    "a quotient of integers": "x.float() + torch.arange(4) / 3",
    "numbers alone": "torch.where(x > 0.5, 1.0, 1 / 3)",
}
#: The gradient's own graph makes a tensor of no named dtype.
TRAINED = """
import torch
torch.set_default_dtype(torch.float64)

class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ torch.eye(4)

@torch.compile
def f(x):
    return Turn.apply(x).sin()

f(torch.rand(3, 4, requires_grad=True)).sum().backward()
"""


def explored(source: str, **options: object) -> Report:
    timing = Timing(min_runs=3, max_seconds=0.1)
    report = explore(source, Options.model_validate({"device": "cpu", "timing": timing, **options}))
    assert torch.get_default_dtype() == torch.float32
    return report


def program(body: str) -> str:
    return (
        "import torch\ntorch.set_default_dtype(torch.float64)\n"
        f"@torch.compile\ndef f(x):\n    return {body}\nf(torch.rand(3, 4))\n"
    )


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_results_are_those_of_eager_under_the_default_dtype(body: str) -> None:
    report = explored(program(body), trace=True)
    assert report.error is None and report.status == "ok"
    assert report.graphs[0].errors and report.timing is not None
    assert not [note.message for note in report.notes]


def test_each_graph_has_the_default_dtype_of_its_own_call() -> None:
    report = explored(
        "import torch\n@torch.compile\ndef f(x):\n    return x.float() + torch.full((4,), 0.1)\nf(torch.rand(4))\n"
        "torch.set_default_dtype(torch.float64)\nf(torch.rand(4))\n"
    )
    assert report.status == "ok" and len(report.graphs) == 2


def test_gradients_are_checked_under_the_default_dtype() -> None:
    report = explored(TRAINED)
    assert report.error is None and report.status == "ok" and report.gradients
    assert not [note.message for note in report.notes]


def test_the_peer_runs_under_the_default_dtype() -> None:
    report = explored(program(BODIES["a tensor of no named dtype"]), peer=True)
    assert report.status == "ok" and report.peer is not None
    assert all(one.failure is None and one.max_error is not None for one in report.peer.contestants)
