"""Every rewrite of one graph, and the record of what was replaced and what was not.

The graph that Dynamo made is left as it is: a rewrite works on a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from compiler.fx.lines import lines_of_text
from compiler.fx.notes import CAPTURED_NAME
from compiler.passes import writing
from compiler.passes.rewrite.attention import looks_like_attention, match_attention
from compiler.passes.rewrite.called import is_masked_call, simplify_mask
from compiler.passes.rewrite.calls import Called, is_in_place, operation, tensor_of
from compiler.passes.rewrite.heads import read_heads_where_they_are, repeats_heads
from compiler.passes.rewrite.reasons import NotLegalError, rewrite_record
from compiler.passes.rewrite.replacement import replace_attention
from compiler.report import Rewrite, Subject


@dataclass
class Rewriting:
    """The graph to compile, which is the captured one where nothing was replaced, and what was decided."""

    graph: torch.fx.GraphModule
    records: list[Rewrite] = field(default_factory=list)


def rewrite(captured: torch.fx.GraphModule) -> Rewriting:
    """Replace what a fused operator of torch does better. `captured` is not changed."""
    if not any(_rewriter_of(node) or repeats_heads(node) for node in captured.graph.nodes):
        return Rewriting(captured)
    copy = copied(captured)
    records = [rewriter(node) for node in list(copy.graph.nodes) if (rewriter := _rewriter_of(node)) is not None]
    # After the masks: a kernel that is given one reads no heads where they are.
    heads = [node for node in copy.graph.nodes if repeats_heads(node)]
    records += [_rewrite_call(node, "heads", read_heads_where_they_are) for node in heads]
    if all(record.verdict == "kept" for record in records):
        return Rewriting(captured, records)
    copy.recompile()
    return Rewriting(copy, records)


def copied(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A module with a copy of the graph and of what Dynamo says of it, and with the same tensors."""
    nodes: dict[torch.fx.Node, torch.fx.Node] = {}
    copy = writing.copied(graph, nodes)
    read_after_changes(copy.graph)
    # Dynamo tells AOTAutograd the source of each input by attributes of its node, which torch does not copy.
    for old, made in [(graph, copy), *nodes.items()]:
        for name, value in vars(old).items():
            if name not in vars(made):
                setattr(made, name, value)
    return copy


def read_after_changes(graph: torch.fx.Graph) -> None:
    """`scores.mul_(2)` gives `scores` itself: what reads `scores` after it reads the call's result instead, so that a
    chain of calls in place is a chain of nodes."""
    for node in graph.nodes:
        changed = node.args[0] if node.args else None
        if is_in_place(node) and isinstance(changed, torch.fx.Node):
            for user in [user for user in changed.users if user > node]:
                user.replace_input_with(changed, node)


def _rewriter_of(node: torch.fx.Node) -> Callable[[torch.fx.Node], Rewrite] | None:
    """What decides about a node, if it is where something may be rewritten."""
    if operation(node) == "softmax" and tensor_of(node) is not None and looks_like_attention(node):
        return _rewrite_attention
    return (lambda call: _rewrite_call(call, "mask", simplify_mask)) if is_masked_call(node) else None


def _rewrite_call(node: torch.fx.Node, what: Subject, replace: Callable[[torch.fx.Node], Called]) -> Rewrite:
    """The record of a call of torch's attention that is replaced by another one, or is not."""
    lines, name = lines_of_text(node.meta.get("stack_trace")), _captured_name(node)
    try:
        found = replace(node)
    except NotLegalError as refusal:
        return rewrite_record(what, refusal.reason, refusal.detail, lines, is_replaced=False)
    record = rewrite_record(what, found.reason, f"{found.detail}.", lines, is_replaced=True)
    record.nodes = [name]
    return record


def _captured_name(node: torch.fx.Node) -> str:
    """The name of a call in the captured graph, which what is written in its place has in its `meta`."""
    name: str = node.meta.setdefault(CAPTURED_NAME, node.name)
    return name


def _rewrite_attention(softmax: torch.fx.Node) -> Rewrite:
    lines = lines_of_text(softmax.meta.get("stack_trace"))
    try:
        found = match_attention(softmax)
        _captured_name(found.result)
        lines = tuple(sorted({line for n in found.calls for line in lines_of_text(n.meta.get("stack_trace"))}))
        plan = replace_attention(found)
    except NotLegalError as refusal:
        return rewrite_record("attention", refusal.reason, refusal.detail, lines, is_replaced=False)
    removed = [node.name for node in reversed(found.calls)]
    for node in sorted(found.calls, reverse=True):
        if not node.users:
            softmax.graph.erase_node(node)
    record = rewrite_record("attention", "attention.replaced", plan.describe(), lines, is_replaced=True)
    record.nodes = removed
    return record
