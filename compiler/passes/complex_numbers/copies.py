"""A copy of conjugated numbers is one pass over them.

    clone(_conj(z)), which torch writes before a product     ->     conj_physical(z)

In eager mode the first of both is a view. Here it is a library call where no loop computes it, whose result owns its
memory, so that each number was copied twice.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.fx.notes import STANDS_FOR
from compiler.options import Options
from compiler.passes.writing import copied

aten = torch.ops.aten


def conjugate_as_copied(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` in which copies conjugate, or `graph` itself where there are none."""
    if not any(map(_is_copy, graph.graph.nodes)):
        return graph, ()
    copy = copied(graph)
    for node in filter(_is_copy, list(copy.graph.nodes)):
        view = node.args[0]
        node.target, node.args, node.kwargs = aten.conj_physical.default, view.args, {}
        if not view.users:
            node.meta[STANDS_FOR] = (*node.meta.get(STANDS_FOR, ()), view.name)
            copy.graph.erase_node(view)
    copy.recompile()
    return copy, ()


def _is_copy(node: Node) -> bool:
    """Whether it is one that keeps the strides, as conjugating does."""
    view = node.args[0] if node.target is aten.clone.default else None
    keeps_strides = node.kwargs.get("memory_format") in (None, torch.preserve_format)
    return isinstance(view, Node) and view.target is aten._conj.default and keeps_strides
