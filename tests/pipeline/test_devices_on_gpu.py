"""Graphs with tensors of a CPU beside those of a GPU: each result is eager's, and lies where eager mode puts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from compiler.backend import fusionscope
from compiler.devices import processor_name
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.reproducer import reproducer
from tests.pipeline.two_devices import CASES

pytestmark = pytest.mark.gpu


def assert_alike(ours: Any, eager: Any) -> None:
    for mine, theirs in zip(tree_leaves(ours), tree_leaves(eager), strict=True):
        assert mine.device == theirs.device
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", CASES)
def test_tensors_of_two_devices(name: str) -> None:
    torch._dynamo.reset()
    function, given = CASES[name]
    ours, eager = [one.real() for one in given], [one.real() for one in given]
    compiled = torch.compile(function, backend=fusionscope, fullgraph=True)
    for _ in range(2):
        assert_alike(compiled(*ours), function(*eager))
        assert_alike(ours, eager)


def weighted(x: Tensor, scale: Tensor, row: Tensor) -> Tensor:
    return ((x * scale).sin() + row.to(x.device)).sum()


def test_gradients_of_what_lies_on_the_cpu() -> None:
    torch._dynamo.reset()

    def gradients(function: Callable[..., Tensor]) -> list[Tensor]:
        inputs = [torch.linspace(0, 1, 20, device="cuda").view(5, 4), torch.tensor(2.5), torch.arange(4.0)]
        leaves = [x.requires_grad_() for x in inputs]
        return list(torch.autograd.grad(function(*leaves), leaves))

    assert_alike(gradients(torch.compile(weighted, backend=fusionscope)), gradients(weighted))


OPTIMISERS = [
    *((kind, {}) for kind in ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad")),
    *((kind, {"foreach": True}) for kind in ("Adam", "SGD", "RMSprop", "Adagrad")),
    *((kind, {"fused": True}) for kind in ("Adam", "AdamW", "SGD")),
    ("Adam", {"capturable": True}),
    ("NAdam", {}),
]


@pytest.mark.parametrize("kind, settings", OPTIMISERS, ids=str)
def test_compiled_steps_of_an_optimiser(kind: str, settings: dict[str, bool]) -> None:
    results = []
    for compiles in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        parameters = [torch.nn.Parameter(torch.randn(7, 5).cuda()), torch.nn.Parameter(torch.randn(3).cuda())]
        optimiser = getattr(torch.optim, kind)(parameters, lr=0.1, **settings)
        step = torch.compile(optimiser.step, backend=fusionscope) if compiles else optimiser.step
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = torch.cos(parameter.detach() * 3)
            step()
        results.append([parameter.detach() for parameter in parameters])
    assert_alike(*results)


def test_a_graph_of_cpu_tensors_is_told_as_one() -> None:
    source = "import torch\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(64, device=torch.device('cpu')))"
    report = explore(source, Options(timing=Timing(enabled=False)))
    assert report.environment.device_name == processor_name()
    assert [report.environment.device, *(graph.device for graph in report.graphs)] == ["cpu", "cpu"]
    assert 'DEVICE = "cpu"' in reproducer(report, report.graphs[0].kernels[0].name)


def test_graphs_of_both_devices_are_told_as_of_the_gpu() -> None:
    source = (
        "import torch\nf = torch.compile(lambda x: x.sin() + 1)\nf(torch.ones(64))\nf(torch.ones(64, device='cuda'))\n"
    )
    report = explore(source, Options(timing=Timing(enabled=False)))
    assert [report.environment.device, *(graph.device for graph in report.graphs)] == ["cuda", "cpu", "cuda"]


def test_the_times_of_a_cpu_beside_a_gpu_are_its_own() -> None:
    source = "import torch\ndef f(x):\n    return x.sin() + 1\nf(torch.ones(64, device=torch.device('cpu')))"
    report = explore(source, Options(timing=Timing(max_seconds=0.1)))
    assert report.timing is not None and report.timing.device == "cpu"
    assert report.graphs[0].kernels[0].measured_us is not None
