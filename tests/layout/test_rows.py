"""Products of sizes that divide nothing are padded in training graphs, and nothing that a caller sees is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.backend import fusionscope
from compiler.compile import GraphCompilation, observed_compilations
from compiler.ir.nodes import ExternNode
from compiler.layout import rows

WORDS, WIDTH, ROWS = 53, 16, 24
aten = torch.ops.aten


def scores(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy((x @ table.t()).view(2, -1, WORDS).flatten(0, 1), targets)


def shown(x: Tensor, table: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    logits = x @ table.t()
    return F.cross_entropy(logits, targets), logits


def with_bias(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(x, table) + table[:, 0], targets)


def squared(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return ((x @ table.t()).tanh() * targets[:, None]).square().sum()


def inputs() -> list[Tensor]:
    torch.manual_seed(0)
    x, table = torch.randn(ROWS, WIDTH).bfloat16(), torch.randn(WORDS, WIDTH).bfloat16()
    return [x.requires_grad_(), table.requires_grad_(), torch.randint(0, WORDS, (ROWS,))]


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products on the CPU are padded too."""
    monkeypatch.setattr(rows, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(rows, "KINDS", ("cuda", "cpu"))


def train(function: Any) -> tuple[Any, list[Tensor], list[GraphCompilation]]:
    graphs: list[GraphCompilation] = []
    torch._dynamo.reset()
    given = inputs()
    with observed_compilations(graphs.append):
        result = torch.compile(function, backend=fusionscope)(*given)
        (result[0] if isinstance(result, tuple) else result).backward()
    return result, [tensor.grad for tensor in given[:2] if tensor.grad is not None], graphs


def sizes_of_products(graph: GraphCompilation) -> set[int]:
    assert graph.loops is not None
    calls = [node for node in graph.loops.nodes if isinstance(node, ExternNode) and node.target is aten.mm.default]
    return {int(size) for call in calls for tensor in call.tensor_arguments for size in tensor.layout.shape}  # type: ignore[arg-type]


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize("function", [scores, shown, with_bias, squared])
def test_padded_products_give_what_eager_gives(function: Callable[..., Any]) -> None:
    result, gradients, graphs = train(function)
    assert all(size % rows.PIECE == 0 for graph in graphs for size in sizes_of_products(graph))
    if function is scores:
        buffers = graphs[1].loops.buffers  # type: ignore[union-attr]
        assert not any("constant_pad" in name for name in buffers), "computed at its width, and copied nowhere"
        assert any(layout.shape == (ROWS, 56) for layout in buffers.values())
    given = inputs()
    expected = function(*given)
    loss = expected[0] if isinstance(expected, tuple) else expected
    loss.backward()
    exact = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in given[:2]]
    reference = function(*exact, given[2])
    (reference[0] if isinstance(reference, tuple) else reference).backward()
    for own, eager, true in zip(gradients, given, exact, strict=False):
        assert eager.grad is not None and true.grad is not None
        assert own.stride() == eager.grad.stride() and own.shape == eager.grad.shape
        error, allowed = (own - true.grad).norm(), 2 * (eager.grad - true.grad).norm()
        assert error <= allowed + 4e-3 * true.grad.norm()
    if isinstance(expected, tuple):
        assert result[1].stride() == expected[1].stride()
        torch.testing.assert_close(result[1], expected[1])


@pytest.mark.parametrize(
    ("kind", "sizes", "dtype", "is_padded"),
    [
        ("cuda", (16384, 768, 50257), torch.bfloat16, True),
        ("cuda", (16384, 768, 50257), torch.float32, False),
        ("cuda", (16384, 768, 50304), torch.bfloat16, False),
        ("cuda", (16, 768, 50257), torch.bfloat16, False),
        ("cuda", (1 << 22, 768, 3), torch.bfloat16, False),
        ("cpu", (16384, 768, 50257), torch.bfloat16, False),
    ],
)
def test_products_are_padded_where_that_costs_little_and_pays(
    kind: str, sizes: tuple[int, int, int], dtype: torch.dtype, is_padded: bool
) -> None:
    m, k, n = sizes
    with FakeTensorMode():
        graph = make_fx(torch.mm)(torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype))
    for node in graph.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = FakeTensor(node.meta["val"].fake_mode, node.meta["val"].to("meta"), torch.device(kind))
    assert rows._should_be_padded(graph.graph.find_nodes(op="call_function", target=aten.mm.default)[0]) == is_padded
