"""Where a graph writes to memory, expansions that repeat nothing are views, and dropouts that drop nothing are gone.

    y = x.expand(4, 6);  y.exp_()              ->      y = alias(x);  y.exp_()      x has the shape (4, 6)
    y = dropout(x, 0.5, False);  y.exp_()      ->      x.exp_()

AOTAutograd writes through an expanded view by its difference, x + (y - x). That loses the digits that x has in front of
y's, and is NaN where x is infinite (PyTorch 2.13, `expand_inverse` of its functionalisation). Through other views it
writes the values themselves. `write_to_repeated_memory` finds writes through what does repeat elements.

A dropout gives its very argument where it drops nothing. AOTAutograd makes a copy of that (`dropout` of PyTorch 2.13's
decompositions), so that a write does not reach the argument.
"""

from __future__ import annotations

import operator

import torch

from compiler.capture.autograd.overlaps import repeats
from compiler.capture.autograd.repeated_writes import is_in_place, name_of_target

_EXPANSIONS = frozenset(("expand", "expand_as", "broadcast_to"))
#: Of a dropout: the share that it drops, and whether it does.
_DEFAULTS = (0.5, True)


def with_exact_writes(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Dynamo's graph, or a copy of it in which its writes reach what eager mode's reach, with the same values."""
    from compiler.passes.rewrite.rewriting import copied

    if not any(map(is_in_place, graph.graph.nodes)) or not any(map(_plain_source, graph.graph.nodes)):
        return graph
    graph = copied(graph)
    for node in graph.graph.nodes:
        source = _plain_source(node)
        if source is not None:
            node.replace_all_uses_with(source if _drops_nothing(node) else _viewed(node, source))
            graph.graph.erase_node(node)
    graph.recompile()
    return graph


def _plain_source(node: torch.fx.Node) -> torch.fx.Node | None:
    """What the call expands, if that gets no more than new dimensions of size 1 in front; or a dropout's argument."""
    source = node.args[0] if name_of_target(node) in _EXPANSIONS or _drops_nothing(node) else None
    if node.target is operator.getitem and getattr(node.args[0], "target", None) is torch.functional.broadcast_tensors:
        source = node.args[0].args[node.args[1]]  # type: ignore[union-attr,index]
    value = node.meta.get("example_value")
    is_view = isinstance(source, torch.fx.Node) and isinstance(value, torch.Tensor)
    return source if is_view and not repeats(value) else None  # type: ignore[return-value,arg-type]


def _drops_nothing(node: torch.fx.Node) -> bool:
    """Whether it is a dropout that is known to give its argument."""
    if node.target not in (torch.nn.functional.dropout, torch.dropout) or not node.args:
        return False
    _, share, is_training = (*node.args, *_DEFAULTS[len(node.args) - 1 :])[:3]
    share, is_training = node.kwargs.get("p", share), node.kwargs.get("training", node.kwargs.get("train", is_training))
    return is_training is False or bool(share == 0)


def _viewed(node: torch.fx.Node, source: torch.fx.Node) -> torch.fx.Node:
    value = source.meta["example_value"]
    with node.graph.inserting_before(node):
        view = node.graph.call_function(torch.ops.aten.alias.default, (source,))
        for _ in range(node.meta["example_value"].dim() - value.dim()):
            view = node.graph.call_function(torch.ops.aten.unsqueeze.default, (view, 0))
    view.meta.update(node.meta)
    return view
