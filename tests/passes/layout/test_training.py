"""Layouts in training: forward and backward graph have one, and gradients are eager's, strides included."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.checking.judge import is_correct
from tests.passes.layout.test_channels_last import CompiledForGpu, convolutions, is_channels_last, moved

aten = torch.ops.aten


class Residual(nn.Module):
    """A stem, a residual block with trained statistics, filters of one pixel; what is saved is returned as well."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.block = nn.Conv2d(16, 16, 3, padding=1)
        self.last = nn.Conv2d(16, 32, 1, stride=2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(self.stem(x)).relu()
        z = (self.block(y) + y).relu()
        return self.last(z).mean((2, 3)), z.flatten(1)


@dataclass
class Trained:
    results: tuple[Tensor, ...]
    gradients: dict[str, Tensor]


def train(module: nn.Module, call: Callable[[Tensor], tuple[Tensor, ...]], dtype: torch.dtype) -> Trained:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 3, 12, 10, generator=generator).bfloat16().to(dtype).requires_grad_()
    results = call(x)
    torch.autograd.backward([result.sin().sum() for result in results])
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()} | {"x": x.grad}
    return Trained(
        tuple(result.detach() for result in results), {name: g for name, g in gradients.items() if g is not None}
    )


@pytest.fixture(scope="module")
def trained() -> tuple[CompiledForGpu, Trained, Trained, Trained]:
    torch.manual_seed(0)
    ours = Residual().bfloat16()
    eager, exact = copy.deepcopy(ours), copy.deepcopy(ours).double()
    backend = CompiledForGpu()
    torch._dynamo.reset()
    found = train(ours, torch.compile(ours, backend=backend, dynamic=False), torch.bfloat16)
    return backend, found, train(eager, eager, torch.bfloat16), train(exact, exact, torch.float64)


Runs = tuple[CompiledForGpu, Trained, Trained, Trained]


def test_results_and_gradients_are_as_good_as_eager_s(trained: Runs) -> None:
    _, found, eager, exact = trained
    assert is_correct(found.results, exact.results, eager.results)
    assert found.gradients.keys() == exact.gradients.keys()
    for name, gradient in found.gradients.items():
        assert is_correct(gradient, exact.gradients[name], eager.gradients[name]), name


def test_results_and_gradients_have_eager_s_strides(trained: Runs) -> None:
    _, found, eager, _ = trained
    assert [result.stride() for result in found.results] == [result.stride() for result in eager.results]
    assert {n: g.stride() for n, g in found.gradients.items()} == {n: g.stride() for n, g in eager.gradients.items()}


def test_every_gradient_is_computed_in_the_layout_of_its_convolution(trained: Runs) -> None:
    """Channels-last, all three, and so is what the calls read; the filters' gradients alone are converted back."""
    forward, backward = trained[0].compilations
    assert [len(choice.nodes) for choice in moved(forward)] == [3]
    assert [len(choice.nodes) for choice in moved(backward)] == [3]
    assert len(convolutions(forward)) == 2  # and the stem, of few channels, is a product
    calls = convolutions(backward, aten.convolution_backward.default)
    assert len(calls) == 3
    for node in calls:
        assert all(is_channels_last(t.layout.stride, t.layout.shape) for t in node.tensor_arguments[:3])


def test_what_is_saved_is_not_converted(trained: Runs) -> None:
    """Of the forward graph's convolutions only the results that the caller gets are: the last ReLU, made flat."""
    forward, backward = trained[0].compilations
    assert [c.reader for choice in moved(forward) for c, _ in choice.conversions if c.what == "output"] == ["relu_1"]
    images = [c.source for choice in moved(backward) for c, _ in choice.conversions if c.what == "image"]
    assert "relu" not in images


def test_the_price_of_a_convolution_holds_its_gradients(trained: Runs) -> None:
    (forward,), (backward,) = (moved(compilation) for compilation in trained[0].compilations)
    assert forward.numbers["kept_us"] > backward.numbers["kept_us"]


SNIPPET = """
import torch

@torch.compile
def program(x, a, b):
    return torch.conv2d(torch.conv2d(x, a, padding=1).relu(), b, padding=1).relu().sum()

x = torch.randn(2, 16, 12, 10, dtype=torch.bfloat16)
a, b = (torch.randn(16, 16, 3, 3, dtype=torch.bfloat16) / 12 for _ in range(2))
a.requires_grad_(), b.requires_grad_()
program(x, a, b).backward()
"""


def test_an_exploration_shows_one_layout_for_both_graphs_and_checks_their_gradients() -> None:
    report = explore(SNIPPET, Options(device="cpu", target="sm_90", timing=Timing(enabled=False)))
    assert report.error is None, report.error
    assert [[choice.verdict for choice in graph.layouts] for graph in report.graphs] == [["channels_last"]] * 2
    assert {check.name for check in report.gradients} == {"the result", "the gradient of a", "the gradient of b"}
    assert all(check.is_correct for check in report.gradients)


def test_in_float32_gradients_keep_convolutions_as_eager_lays_them_out() -> None:
    """Those of a filter are exact in one layout where they are rounded to TF32 in the other."""
    source = SNIPPET.replace(", dtype=torch.bfloat16", "").replace("16", "64")
    report = explore(source, Options(device="cpu", target="sm_90", produce=("capture", "lower")))
    assert [[choice.reason for choice in graph.layouts] for graph in report.graphs] == [["layout.gradients"]] * 2


def test_with_the_knob_nothing_moves_in_either_graph() -> None:
    options = Options(device="cpu", target="sm_90", knobs={"disable": ["layout"]}, produce=("capture", "lower"))
    report = explore(SNIPPET, options)
    assert [[choice.reason for choice in graph.layouts] for graph in report.graphs] == [["policy.disabled"]] * 2
