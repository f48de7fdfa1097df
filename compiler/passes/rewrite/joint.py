"""Replacing calls in the joint graph of a training step, before it is split, and the records of that.

A record is made at the node that came of it, which AOTAutograd puts into the forward graph, the backward graph or both:
each graph's report has those of its own nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from compiler.fx.fake_values import fake_mode_of
from compiler.fx.notes import REWRITTEN, lines_noted
from compiler.passes.rewrite.reasons import rewrite_record
from compiler.report import Rewrite, Subject


def note_rewrite(node: Node, what: Subject, reason: str) -> None:
    """Remember at `node`, which came of it, what was replaced."""
    node.meta[REWRITTEN] = (what, reason)


def replace_each(joint: GraphModule, target: Any, replace: Callable[[Node], bool]) -> GraphModule:
    """The graph, with what `replace` makes of each call of `target`; it tells whether it replaced the call."""
    replaced = [replace(node) for node in joint.graph.find_nodes(op="call_function", target=target)]
    if any(replaced):
        joint.graph.lint()
        joint.recompile()
    return joint


def call_beside(stands_for: Node, target: Any, *args: Any, **settings: Any) -> Node:
    """A call where the graph is being written, which says of itself what the node that it stands for does."""
    node = stands_for.graph.call_function(target, args, settings)
    node.meta = {key: value for key, value in stands_for.meta.items() if key != "val"}
    values: Any = torch.fx.node.map_arg(node.args, lambda argument: argument.meta["val"])
    with fake_mode_of([*values, stands_for.meta["val"]]):
        node.meta["val"] = target(*values, **settings)
    return node


def rewrites_of(graph: Graph) -> Iterable[Rewrite]:
    """Those that a graph split from a joint graph has the results of."""
    for node in graph.nodes:
        if node.op == "call_function" and REWRITTEN in node.meta:
            what, reason = node.meta[REWRITTEN]
            yield rewrite_record(what, reason, f"{node.name} came of it", lines_noted(node), is_replaced=True)
