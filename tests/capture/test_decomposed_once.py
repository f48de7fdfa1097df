"""A decomposition that is traced once gives the graphs that it gives traced each time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from compiler.capture.autograd import aot
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.shortcuts.decomposed_once import decomposed_once
from compiler.lowering.decompositions import decompositions

aten = torch.ops.aten

#: What is said of a node by addresses, and its value, of which `told` tells.
NOT_TOLD = ("val", "from_node", "nn_module_stack", "fwd_nn_module_stack")


class Norms(nn.Module):
    """Two batch norms of equal inputs, one of others, and one whose factor and term are one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.BatchNorm2d(8)
        self.same = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x = self.second(torch.relu(self.first(x)))
        mean = self.same.detach()
        x = F.batch_norm(x, mean, mean, self.same, self.same)
        return x, self.third(y)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        for norm in self.norms:
            x = F.gelu(norm(x)) + F.gelu(x, approximate="tanh")
            y = F.dropout(torch.softmax(norm(y), -1), 0.5)
        return x.sum(), y.sum()


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]]]] = {
    "norms": (lambda: Norms().eval(), [(2, 4, 6, 6), (2, 8, 3, 3)]),
    "norms in training": (Norms, [(2, 4, 6, 6), (2, 8, 3, 3)]),
    "layers": (Layers, [(4, 16), (2, 4, 16)]),
}


def told(value: Any) -> Any:
    if isinstance(value, Tensor):
        sizes = tuple(value.shape), value.stride(), value.storage_offset()
        return *map(str, sizes), value.dtype, str(value.device), value.requires_grad
    return tuple(map(told, value)) if isinstance(value, tuple | list) else value


def graphs_of(name: str, is_open: bool, learns: bool) -> list[str]:
    """All that is said of each node of the graphs that AOTAutograd gives."""
    make, sizes = PROGRAMS[name]
    torch.manual_seed(0)
    module = make()
    inputs = [torch.randn(size) for size in sizes]
    found: list[str] = []
    numbers: dict[Any, int] = {}  # of autograd's operators, which are counted on in a process

    def keep(part: torch.fx.GraphModule, phase: str) -> Any:
        for node in part.graph.nodes:
            meta = {key: node.meta[key] for key in sorted(node.meta) if key not in NOT_TOLD}
            if "seq_nr" in meta:
                meta["seq_nr"] = numbers.setdefault(meta["seq_nr"], len(numbers))
            value = told(node.meta.get("val"))
            found.append(f"{phase} {node.name} {node.op} {node.target} {node.args} {node.kwargs} {value} {meta}")
        return make_boxed_func(part.forward)

    def backend(graph: torch.fx.GraphModule, example_inputs: Any) -> Any:
        return compile_through_aot(graph, example_inputs, keep)

    torch._dynamo.reset()
    with torch.set_grad_enabled(learns):
        results = torch.compile(module, backend=backend, dynamic=is_open)(*inputs)
        if learns:
            sum(result.sum() for result in results).backward()
    return [re.sub("0x[0-9a-f]+", "", line) for line in found]


@pytest.mark.parametrize(
    ("name", "is_open", "learns"),
    [
        ("norms", False, False),
        ("norms in training", False, True),
        ("layers", False, False),
        ("layers", False, True),
        ("layers", True, False),
    ],
)
def test_graphs_are_those_of_decompositions_that_are_traced_each_time(
    name: str, is_open: bool, learns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = graphs_of(name, is_open, learns)
    monkeypatch.setattr(aot, "decomposed_once", dict)
    assert graphs_of(name, is_open, learns) == once


def traced(function: Callable[..., Any], *inputs: Tensor) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph of a function, and the operators whose decompositions were asked, one entry for each time."""
    asked: list[Any] = []

    def counted(target: Any, decomposition: Callable[..., Any]) -> Callable[..., Any]:
        def decompose(*args: Any, **kwargs: Any) -> Any:
            asked.append(target)
            return decomposition(*args, **kwargs)

        return decompose

    table = decomposed_once({target: counted(target, function) for target, function in decompositions().items()})
    graph = make_fx(function, table, tracing_mode="fake")(*inputs)
    return graph, asked


def test_another_table_is_asked_for_its_own_decompositions() -> None:
    def doubled(x: Tensor) -> Tensor:
        return aten.mul.Tensor(x, 2)

    def added(x: Tensor) -> Tensor:
        return aten.add.Tensor(x, x)

    for decomposition, target in ((doubled, aten.mul.Tensor), (added, aten.add.Tensor), (doubled, aten.mul.Tensor)):
        table = decomposed_once({aten.silu.default: decomposition})
        graph = make_fx(aten.silu.default, table, tracing_mode="fake")(torch.ones(3))
        assert [node.target for node in graph.graph.find_nodes(op="call_function", target=target)] == [target]
        table.clear()  # as who asks may do


def test_equal_inputs_are_decomposed_once() -> None:
    def norms(x: Tensor, y: Tensor, weight: Tensor) -> list[Tensor]:
        return [F.layer_norm(each, (8,), weight, weight) for each in (x, x + 1, y, y * 2, x - 1)]

    inputs = torch.randn(4, 8), torch.randn(2, 8), torch.randn(8)
    graph, asked = traced(norms, *inputs)
    assert asked.count(aten.native_layer_norm.default) == 2
    torch.testing.assert_close(graph(*inputs), norms(*inputs))


def test_the_first_node_of_a_graph_may_be_decomposed() -> None:
    def filled() -> list[Tensor]:
        return [torch.zeros(3), torch.ones(3), torch.zeros(3), torch.zeros(3)]

    assert all(map(torch.equal, torch.compile(filled, backend="fusionscope")(), filled()))
    graph, _ = traced(filled)
    assert all(map(torch.equal, graph(), filled()))


def test_another_number_or_another_tensor_twice_is_decomposed_anew() -> None:
    def norms(x: Tensor, one: Tensor, other: Tensor) -> list[Tensor]:
        return [
            F.layer_norm(x, (8,), one, other),
            F.layer_norm(x, (8,), other, other),
            F.layer_norm(x, (8,), one, other, eps=1e-3),
            F.layer_norm(x.to(torch.bfloat16), (8,), one.to(torch.bfloat16), other.to(torch.bfloat16)),
        ]

    inputs = torch.randn(4, 8), torch.randn(8), torch.randn(8)
    graph, asked = traced(norms, *inputs)
    assert asked.count(aten.native_layer_norm.default) == 4
    torch.testing.assert_close(graph(*inputs), norms(*inputs))


def test_what_draws_numbers_or_shares_memory_is_decomposed_each_time() -> None:
    def function(x: Tensor) -> list[Tensor]:
        return [each for _ in range(2) for each in (F.dropout(x, 0.5), aten.native_dropout(x, 0.5, True)[0], x.t())]

    graph, asked = traced(function, torch.randn(64, 64))
    assert len(asked) == 2 * len(set(asked))
    first, _, _, second, *_ = graph(torch.ones(64, 64))
    assert not torch.equal(first, second)


def test_a_zero_keeps_its_sign() -> None:
    def decomposition(x: Tensor, slope: float) -> Tensor:
        return (x.abs() + 1).exp() * slope

    def function(x: Tensor) -> list[Tensor]:
        return [F.leaky_relu(x, slope) for slope in (0.0, -0.0)]

    graph = make_fx(function, decomposed_once({aten.leaky_relu.default: decomposition}), tracing_mode="fake")
    assert [bool(result.signbit().any()) for result in graph(torch.ones(3))(torch.ones(3))] == [False, True]


def test_a_decomposition_may_ask_for_a_number_in_a_tensor() -> None:
    def decomposition(x: Tensor, other: Tensor) -> Tensor:
        return (x * other.item() + 1).exp()

    def function(x: Tensor) -> list[Tensor]:
        return [torch.hypot(x, torch.tensor(number)) for number in (2.0, 3.0)]

    graph = make_fx(function, decomposed_once({aten.hypot.default: decomposition}), tracing_mode="fake")(torch.ones(3))
    factors = [node.args[1] for node in graph.graph.nodes if node.target is aten.mul.Tensor]
    assert factors == [2.0, 3.0]


def test_a_constant_of_a_decomposition_stays_with_it() -> None:
    """A tensor that is made of numbers is no node that can be written down again."""

    def decomposition(x: Tensor, approximate: str = "none") -> Tensor:
        return (x * torch.tensor([1.0, 2.0]) + 1).exp()

    def function(x: Tensor, y: Tensor) -> list[Tensor]:
        return [F.gelu(x), F.gelu(y)]

    x, y = torch.randn(3, 2), torch.randn(3, 2)
    graph = make_fx(function, decomposed_once({aten.gelu.default: decomposition}), tracing_mode="fake")(x, y)
    torch.testing.assert_close(graph(x, y), [decomposition(x), decomposition(y)])
