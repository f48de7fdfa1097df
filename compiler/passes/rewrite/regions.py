"""Regions that a user marks to be compiled once (`torch.compiler.nested_compile_region`) become part of their graph.

    y = invoke_subgraph(region_0, "region_0", x);  z = y[0] + 1      ->      sin = x.sin();  z = sin + 1

What is in a region fuses with what stands around it, so it is written out; each call is compiled for itself.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch

from compiler.passes.rewrite.rewriting import copied
from compiler.passes.writing import calls_of

_REGION = torch.ops.higher_order.invoke_subgraph


def with_regions_written_out(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Dynamo's graph, or a copy in which each region, and each inside of one, is replaced by its nodes."""
    if not calls_of(graph, _REGION):
        return graph
    graph = copied(graph)
    while calls := calls_of(graph, _REGION):
        _write_out(graph, calls[0])
    graph.recompile()
    return graph


def _write_out(graph: torch.fx.GraphModule, call: torch.fx.Node) -> None:
    read: Any = call.args[0]
    region = graph.get_submodule(read.target)
    assert isinstance(region, torch.fx.GraphModule)
    made: dict[torch.fx.Node, Any] = dict(zip(region.graph.find_nodes(op="placeholder"), call.args[2:], strict=True))
    with graph.graph.inserting_before(call):
        results: Any = graph.graph.graph_copy(region.graph, made)
    for node in region.graph.find_nodes(op="get_attr"):
        made[node].target = f"{call.name}_{node.target}".replace(".", "_")
        setattr(graph, made[node].target, attrgetter(str(node.target))(region))
    for user in list(call.users):
        position: Any = user.args[1]
        user.replace_all_uses_with(results[position])
        graph.graph.erase_node(user)
    graph.graph.erase_node(call)
