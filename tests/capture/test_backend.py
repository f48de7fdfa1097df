"""torch.compile(backend="fusionscope"), with a stand-in for the compiler behind it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from compiler.backend import fusionscope


@pytest.fixture
def compiled_graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.fx.GraphModule]]:
    """Graphs that `compile_graph` was asked for; each is run by ATen as it is."""
    graphs: list[torch.fx.GraphModule] = []

    def compile_graph(
        graph: torch.fx.GraphModule, options: Any, device: torch.device, phase: str
    ) -> Callable[[list[Any]], Any]:
        assert device.type == "cpu"
        graphs.append(graph)
        return lambda inputs: list(graph(*inputs))

    module = types.ModuleType("compiler.compile")
    module.compile_graph = compile_graph  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compiler.compile", module)
    torch._dynamo.reset()
    yield graphs
    torch._dynamo.reset()


def test_forward_and_backward(compiled_graphs: list[torch.fx.GraphModule]) -> None:
    layer = torch.nn.Linear(8, 4)
    x = torch.randn(3, 8)
    compiled = torch.compile(lambda value: torch.relu(layer(value)).sum(), backend=fusionscope)
    loss = compiled(x)
    torch.autograd.backward(loss)
    ours = layer.weight.grad
    layer.weight.grad = None
    torch.autograd.backward(torch.relu(layer(x)).sum())
    assert ours is not None and layer.weight.grad is not None
    torch.testing.assert_close(ours, layer.weight.grad)
    assert len(compiled_graphs) == 2


@pytest.mark.parametrize(("dynamic", "graphs"), [(None, 2), (True, 1), (False, 3)])
def test_a_graph_serves_the_sizes_that_its_guards_allow(
    compiled_graphs: list[torch.fx.GraphModule], dynamic: bool | None, graphs: int
) -> None:
    compiled = torch.compile(lambda x, n: x.reshape(-1, 2) * n + x.shape[0], backend=fusionscope, dynamic=dynamic)
    for size, factor in ((8, 2), (10, 3), (12, 4), (8, 2)):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x, factor), x.reshape(-1, 2) * factor + size)
    assert len(compiled_graphs) == graphs


def test_sizes_are_the_calls_own_in_the_backward_graph(compiled_graphs: list[torch.fx.GraphModule]) -> None:
    compiled = torch.compile(lambda x: (x.sin() * x.shape[0]).sum(), backend=fusionscope, dynamic=True)
    for size in (6, 9):
        x = torch.randn(size, requires_grad=True)
        torch.autograd.backward(compiled(x))
        assert x.grad is not None
        torch.testing.assert_close(x.grad, x.detach().cos() * size)


def test_options_are_taken_from_torch_compile(compiled_graphs: list[torch.fx.GraphModule]) -> None:
    compiled = torch.compile(lambda x: x + 1, backend=fusionscope, options={"target": "sm_80"})
    assert compiled(torch.zeros(2)).tolist() == [1.0, 1.0]
    with pytest.raises(Exception, match="there is no option 'no_such_option'; there are entry, inputs"):
        torch.compile(lambda x: x + 2, backend=fusionscope, options={"no_such_option": 1})(torch.zeros(2))
    with pytest.raises(Exception, match="the option dynamic cannot be 3: it must be true or false") as refused:
        torch.compile(lambda x: x + 2, backend=fusionscope, options={"dynamic": 3})(torch.zeros(2))
    assert "errors.pydantic.dev" not in str(refused.value)


def test_tangents_of_forward_mode_pass_through() -> None:
    """What was compiled outside of a level of forward-mode differentiation sees no tangents, so it is not called."""
    forward_ad = torch.autograd.forward_ad
    torch._dynamo.reset()
    x, direction = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    compiled = torch.compile(lambda value: (value * value).sin(), backend=fusionscope)
    torch.testing.assert_close(compiled(x), (x * x).sin())
    for _ in range(2):
        with forward_ad.dual_level():
            given = forward_ad.unpack_dual(compiled(forward_ad.make_dual(x, direction)))
            torch.testing.assert_close(given.tangent, 2 * x * (x * x).cos() * direction)
        torch.testing.assert_close(compiled(x), (x * x).sin())
