"""Writing calls into graphs of ATen in place of others, most often into a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _make_graph_module
from torch.utils._pytree import tree_leaves

from compiler.fx.fake_values import fake_mode_of
from compiler.fx.notes import COMPUTED_FOR, LINES, PADDING, REWRITTEN, lines_noted, origins
from compiler.lowering.eager import EagerTensor


def copied(graph: GraphModule, nodes: dict[Node, Node] | None = None) -> GraphModule:
    """With nodes of its own, which have the names and the fake tensors of the others. `nodes` gets both."""
    new = Graph()
    new.output(new.graph_copy(graph.graph, {} if nodes is None else nodes))
    new.output_node().meta = dict(graph.graph.output_node().meta)
    copy = _make_graph_module(graph, new)  # without a text of Python, which takes as long as the copy, in a first call
    copy.meta.update(graph.meta)
    return copy


def calls_of(graph: GraphModule, target: Callable[..., Any]) -> list[Node]:
    return list(graph.graph.find_nodes(op="call_function", target=target))


def with_calls_rewritten(
    graph: GraphModule, target: Callable[..., Any], is_meant: Callable[[Node], bool], rewrite: Callable[[Node], None]
) -> GraphModule:
    """A copy of `graph` in which the calls of `target` that are meant have been rewritten, or `graph` itself where none
    is meant."""
    if not any(map(is_meant, calls_of(graph, target))):
        return graph
    copy = copied(graph)
    for node in calls_of(copy, target):
        if is_meant(node):
            rewrite(node)
    return copy


def call_beside(stands_for: Node, target: Any, *args: Any, name: str | None = None, **settings: Any) -> Node:
    """A call where the graph is being written, which says of itself what the node that it stands for does."""
    node = stands_for.graph.create_node("call_function", target, args, settings, name)
    node.meta = {key: value for key, value in stands_for.meta.items() if key not in (PADDING, REWRITTEN)}
    node.meta["val"] = evaluated(node)
    return node


def evaluated(node: Node) -> Any:
    """What a call gives of the fake tensors of its arguments; of none, in the mode of the node's own."""
    args, settings = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda argument: argument.meta["val"])
    with fake_mode_of([*tree_leaves(args), node.meta["val"]]):
        return node.target(*args, **settings)  # type: ignore[operator]


def call_like(other: Node, target: Callable[..., Any], *args: Any, label: str = "", **kwargs: Any) -> Node:
    """A call that is made for the node `other`, on its device and its lines, of known sizes; see `call_of`."""
    given, named = torch.fx.node.map_arg((args, kwargs), lambda argument: _without_data(argument.meta["val"]))
    result = target(*given, **{**named, "device": "meta"} if "device" in named else named)
    device = other.meta["val"].device
    value = EagerTensor(tuple(result.shape), result.stride(), 0, result.dtype, device)
    return call_of(other, value, target, *args, label=label, **kwargs)


def call_of(other: Node, value: Any, target: Callable[..., Any], *args: Any, label: str = "", **kwargs: Any) -> Node:
    """A call that is made for the node `other`, whose result looks like `value`; named after that node and `label`, if
    there is one."""
    name = f"{other.name}_{label}" if label else None
    node = other.graph.create_node("call_function", target, args, kwargs, name)
    node.meta["val"] = value
    node.meta[LINES] = lines_noted(other)
    if "custom" in other.meta:  # which tells the stream
        node.meta["custom"] = other.meta["custom"]
    node.meta[COMPUTED_FOR] = origins(other)
    return node


def _without_data(value: Any) -> torch.Tensor:
    """A tensor like a fake one on the device `meta`, where ATen tells shapes in a fraction of the time."""
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
