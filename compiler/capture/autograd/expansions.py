"""Expansions that repeat nothing are views, where a graph writes to memory.

    y = x.expand(4, 6);  y.exp_()      ->      y = alias(x);  y.exp_()              x has the shape (4, 6)

AOTAutograd writes through an expanded view by its difference, x + (y - x). That loses the digits that x has in front of
y's, and is NaN where x is infinite (PyTorch 2.13, `expand_inverse` of its functionalisation). Through other views it
writes the values themselves. `write_to_repeated_memory` finds writes through what does repeat elements.
"""

from __future__ import annotations

import operator

import torch

from compiler.capture.autograd.overlaps import repeats
from compiler.capture.autograd.repeated_writes import is_in_place, name_of_target

_EXPANSIONS = frozenset(("expand", "expand_as", "broadcast_to"))


def with_exact_writes(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Dynamo's graph, or a copy of it in which what its writes could go through are plain views."""
    from compiler.passes.rewrite.rewriting import copied

    if not any(map(is_in_place, graph.graph.nodes)) or not any(map(_plain_source, graph.graph.nodes)):
        return graph
    graph = copied(graph)
    for node in graph.graph.nodes:
        source = _plain_source(node)
        if source is not None:
            node.replace_all_uses_with(_viewed(node, source))
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _plain_source(node: torch.fx.Node) -> torch.fx.Node | None:
    """What the call expands, if that gets no more than new dimensions of size 1 in front."""
    source = node.args[0] if name_of_target(node) in _EXPANSIONS else None
    if node.target is operator.getitem and getattr(node.args[0], "target", None) is torch.functional.broadcast_tensors:
        source = node.args[0].args[node.args[1]]  # type: ignore[union-attr,index]
    value = node.meta.get("example_value")
    is_view = isinstance(source, torch.fx.Node) and isinstance(value, torch.Tensor)
    return source if is_view and not repeats(value) else None  # type: ignore[return-value,arg-type]


def _viewed(node: torch.fx.Node, source: torch.fx.Node) -> torch.fx.Node:
    value = source.meta["example_value"]
    with node.graph.inserting_before(node):
        view = node.graph.call_function(torch.ops.aten.alias.default, (source,))
        for _ in range(node.meta["example_value"].dim() - value.dim()):
            view = node.graph.call_function(torch.ops.aten.unsqueeze.default, (view, 0))
    view.meta.update(node.meta)
    return view
