"""While Dynamo captures, a copy of its graph has no text of Python before somebody calls or reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import fx
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.graph_module import GraphModule

from compiler.passes import writing
from compiler.passes.rewrite import rewriting


@pytest.mark.parametrize("copied", [rewriting.copied, writing.copied], ids=["rewrite", "folding"])
@pytest.mark.parametrize("is_captured", [True, False])
def test_a_copy_is_written_as_python_when_it_is_called(
    copied: Callable[[GraphModule], GraphModule], is_captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = fx.symbolic_trace(lambda x, y: torch.sin(x) * y)
    written: list[GraphModule] = []
    by_torch = GraphModule.recompile

    def counted(module: GraphModule) -> object:
        written.append(module)
        return by_torch(module)

    monkeypatch.setattr(GraphModule, "recompile", counted)
    with _use_lazy_graph_module(is_captured):
        copy = copied(graph)
        for node in copy.graph.find_nodes(op="call_function", target=torch.sin):
            node.target = torch.cos
        copy.recompile()
    assert (not written) is is_captured
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(copy(x, y), x.cos() * y)
    assert torch.equal(graph(x, y), x.sin() * y)
    assert "torch.cos" in copy.code
    assert written
