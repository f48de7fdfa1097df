"""Jagged nested tensors: graphs have their values as one tensor, and the lengths of their rows as one size."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.options import Options, Timing
from compiler.pipeline import explore

SNIPPET = """
import torch
@torch.compile
def f(rows):
    return rows.sin() * 2
def make(*lengths):
    return torch.nested.nested_tensor([torch.randn(n, 4) for n in lengths], layout=torch.jagged, requires_grad=True)
f(make(3, 5)).values().sum().backward()
f(make(2, 6, 1))
"""
CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "each element": lambda rows: (rows.sin() * 2).values(),
    "a row": lambda rows: torch.softmax(rows, -1).values() + rows.shape[2],
    "a product": lambda rows: torch.relu(rows @ torch.ones(4, 4)).values(),
    "sums of padded rows": lambda rows: rows.exp().to_padded_tensor(0.0).sum(dim=1),
}


def nested(*lengths: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are a prototype, as torch says
        rows = [torch.linspace(-1, 1, 4 * length).reshape(length, 4) for length in lengths]
        return torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_eager(name: str) -> None:
    torch._dynamo.reset()
    function = CASES[name]
    compiled = torch.compile(function, backend=fusionscope)
    for lengths in ((3, 5), (2, 6, 1)):
        results = []
        for called in (compiled, function):
            rows = nested(*lengths)
            result = called(rows)
            (gradient,) = torch.autograd.grad(result.sum(), rows)
            results.append((result, gradient.values()))
        torch.testing.assert_close(*results)


def test_those_that_no_graph_can_hold_are_left_to_eager() -> None:
    source = SNIPPET.replace(", layout=torch.jagged, requires_grad=True", "").replace(".values().sum().backward()", "")
    report = explore(source, Options(device="cpu", timing=Timing(min_runs=3, max_seconds=0.1)))
    assert report.error is None and not report.graphs


def test_an_exploration_shows_and_checks_them() -> None:
    report = explore(SNIPPET, Options(device="cpu", timing=Timing(min_runs=3, max_seconds=0.1)))
    assert report.error is None and report.status == "ok"
    assert not [note.message for note in report.notes if "could not be read" in note.message]
    assert report.graphs[0].guards and all(graph.kernels for graph in report.graphs)
    assert any("tensors that are made of others" in note.message for note in report.notes)
    assert report.model_dump_json()
