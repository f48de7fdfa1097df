"""A graph that is run once is the graph of AOTAutograd by itself, views too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.capture.autograd import aot
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.shortcuts import traced_once
from compiler.capture.shortcuts.traced_once import Unlike, may_be_traced_once
from tests.capture.programs import NOT_TOLD, told


class Block(nn.Module):
    """A layer with attention by heads: views, a residual, and what a call repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.into, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.into(self.norm(x)).view(2, 5, 3, 4, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        y = self.out(y.transpose(1, 2).reshape(2, 5, 16))
        return F.gelu((y + x).contiguous())


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.first = nn.Parameter(torch.randn(1, 1, 16))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.cat([self.first.expand(2, -1, -1), x[:, 1:]], 1)
        for block in self.blocks:
            x = block(x)
        return x.softmax(-1), x.max(-1).values


def written_view(x: Tensor) -> list[Tensor]:
    """Views of one tensor, one of which is written to: all three change."""
    found = []
    for _ in range(2):
        y = x + 1
        row, other = y[0], y[0]
        row.mul_(2)
        found += [y * 3, row + 1, other + 1]
    return found


def written_input(x: Tensor) -> list[Tensor]:
    y = x.t()
    z = x.t() + 1
    y.add_(1)
    return [y * 2, x * 2, z]


def written_without_its_name(x: Tensor) -> list[Tensor]:
    """The mean and the variance of a batch are written to by the norm."""
    mean = x.sum(0)
    twice = [F.batch_norm(x, mean, mean + 1, training=True) for _ in range(2)]
    F.batch_norm(x, x[0], x[1], training=True)
    return [*twice, x * 2, mean]


def view_of_an_input(x: Tensor) -> list[Tensor]:
    return [x.t(), (x + 1).t(), (x * 2).t()]


def views_of_one(x: Tensor) -> list[Tensor]:
    y = x * 2
    return [y[0], y[1], y.t()]


def the_same_twice(x: Tensor) -> list[Tensor]:
    y = x * 2
    return [x, y, y]


def drawn(x: Tensor) -> list[Tensor]:
    return [x + torch.rand_like(x) for _ in range(3)] + [F.dropout(x, 0.5) for _ in range(3)]


def with_numbers(x: Tensor) -> list[Tensor]:
    return [F.leaky_relu(x, slope) for slope in (0.0, -0.0, 0.5, 0.5)] + [x * torch.tensor(n) for n in (2.0, 3.0, 2.0)]


def with_gradients_on_within(x: Tensor) -> list[Tensor]:
    with torch.enable_grad():
        y = x.sin()
    with torch.no_grad():
        z = x.sin()
    return [y + 1, z + 1, x.sin() + 1]


def with_autocast(x: Tensor) -> list[Tensor]:
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.t()
    return [y, x @ x.t(), x @ x.t()]


def made_here(x: Tensor) -> list[Tensor]:
    return [x + torch.arange(4.0) for _ in range(3)] + [torch.zeros(2), torch.zeros(2)]


FUNCTIONS: tuple[Callable[[Tensor], Any], ...] = (
    written_view, written_input, written_without_its_name, view_of_an_input, views_of_one,
    the_same_twice, drawn, with_numbers, with_gradients_on_within, with_autocast, made_here,
)  # fmt: skip


def compiled(function: Callable[[Tensor], Any], is_open: bool = False) -> tuple[Callable[[Tensor], Any], list[str]]:
    """The function through AOTAutograd alone, and all that is said of each node of its graph once it was called."""
    found: list[str] = []

    def keep(part: torch.fx.GraphModule, phase: str) -> Any:
        for node in part.graph.nodes:
            meta = {key: node.meta[key] for key in sorted(node.meta) if key not in NOT_TOLD and key != "seq_nr"}
            value = told(node.meta.get("val"))
            if node.target is torch.ops.aten.copy.default:  # torch tells another place in memory from the second on
                value = str(node.meta["val"].shape)
            line = f"{phase} {node.name} {node.op} {node.target} {node.args} {node.kwargs} {value} {meta}"
            found.append(re.sub("0x[0-9a-f]+", "", line))
        return make_boxed_func(part.forward)

    def backend(graph: torch.fx.GraphModule, example_inputs: Any) -> Any:
        return compile_through_aot(graph, example_inputs, keep)

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, dynamic=is_open), found


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aot, "may_be_traced_once", lambda _: False)


@pytest.mark.parametrize("is_open", [False, True])
def test_layers_give_the_same_graph(is_open: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, x = Blocks().eval(), torch.randn(2, 5, 16)
    with torch.no_grad():
        call, once = compiled(model, is_open)
        torch.testing.assert_close(call(x), model(x))
        without(monkeypatch)
        call, each_time = compiled(model, is_open)
        call(x)
    assert once == each_time


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions_give_the_same_graph_and_results(
    function: Callable[[Tensor], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    call, once = compiled(function)
    ours, eager = x.clone(), x.clone()
    torch.manual_seed(1)
    results = call(ours)
    torch.manual_seed(1)
    if function is not drawn:
        torch.testing.assert_close(results, function(eager))
    torch.testing.assert_close(ours, eager)
    without(monkeypatch)
    call, each_time = compiled(function)
    call(x.clone())
    assert once == each_time


def test_layers_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[bool] = []
    call = traced_once._Once.call_function

    def counted(self: Any, *arguments: Any) -> Any:
        run.append(get_proxy_mode() is not None)
        return call(self, *arguments)

    monkeypatch.setattr(traced_once._Once, "call_function", counted)
    with torch.no_grad():
        compiled(Blocks().eval())[0](torch.randn(2, 5, 16))
    assert run and all(run)


@pytest.mark.parametrize(
    ("function", "ends"),
    [
        (written_view, []), (written_input, []), (written_without_its_name, [Unlike]), (view_of_an_input, [None]),
        (views_of_one, [None]), (made_here, [None]),
    ],
)  # fmt: skip
def test_what_writes_is_traced_by_torch_alone(
    function: Callable[[Tensor], Any], ends: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[type[BaseException] | None] = []
    by_us = aot.traced_once

    class Watched:
        def __init__(self) -> None:
            self.inner = by_us()

        def __enter__(self) -> None:
            self.inner.__enter__()

        def __exit__(self, kind: Any, *rest: Any) -> Any:
            seen.append(kind)
            return self.inner.__exit__(kind, *rest)

    monkeypatch.setattr(aot, "traced_once", Watched)
    compiled(function)[0](torch.randn(4, 4))
    assert seen == ends


def test_gradients_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise AssertionError("traced once")

    monkeypatch.setattr(aot, "traced_once", refuse)
    x = torch.randn(4, 4, requires_grad=True)
    compiled(lambda x: [x.sin(), x.cos()])[0](x)[0].sum().backward()
    assert torch.equal(x.grad if x.grad is not None else x, x.detach().cos())


@pytest.mark.parametrize("kind", ["SGD", "Adagrad"])
def test_parameters_that_belong_to_the_graph_are_changed(kind: str) -> None:
    """AOTAutograd puts them into the graph, and does not give them to its run."""
    found = []
    for compiles in (False, True):
        parameters = [nn.Parameter(torch.linspace(-1, 1, 6)), nn.Parameter(torch.ones(2, 3))]
        optimiser = getattr(torch.optim, kind)(parameters, lr=0.1, foreach=True)
        step = torch.compile(optimiser.step, backend=fusionscope) if compiles else optimiser.step
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = torch.cos(parameter.detach())
            step()
        found.append([parameter.detach() for parameter in parameters])
    torch.testing.assert_close(found[1], found[0])


def test_tensors_of_another_kind_are_left_to_torch() -> None:
    """As those of `vmap`, which have no memory to look at."""
    graph = fx.Graph()
    node = graph.placeholder("x")
    graph.output((node,))

    def noted(x: Tensor) -> Tensor:
        node.meta["example_value"] = x
        assert not may_be_traced_once(fx.GraphModule({}, graph))
        return x

    torch.vmap(noted)(torch.ones(3, 2))
