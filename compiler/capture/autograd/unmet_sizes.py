"""Checks of data-dependent sizes that repeat what operators check themselves.

    x[x > 0].amax()         torch's graph asserts u0 >= 1; eager's amax says that its dimension must not be empty

Where a check fails, the call runs in eager mode, by Dynamo's graph without what torch asserts. There the operator
raises its own error, or has a result after all. Checks of the user's own (`torch._check`) are calls of that graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Graph = Callable[..., Any]
_ASSERT = torch.ops.aten._assert_scalar.default


class UnmetSize(RuntimeError):
    """A size is not as a graph asserts."""


def asserts_sizes(part: torch.fx.GraphModule) -> bool:
    return bool(part.graph.find_nodes(op="call_function", target=_ASSERT))


def eager_where_unmet(compiled: Graph, dynamo: torch.fx.GraphModule) -> Graph:
    """`compiled`, and eager mode for calls whose sizes it refuses, which it must do before it changes anything."""
    eager: list[torch.fx.GraphModule] = []

    def call(*inputs: Any) -> Any:
        try:
            return compiled(*inputs)
        except UnmetSize:
            pass  # so that no error of eager mode seems to come of it
        if not eager:
            eager.append(_without_assertions(dynamo))
        return eager[0](*inputs)

    return call


def _without_assertions(dynamo: torch.fx.GraphModule) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(dynamo.graph, {}))
    for node in graph.find_nodes(op="call_function", target=_ASSERT):
        graph.erase_node(node)
    return torch.fx.GraphModule(dynamo, graph)
