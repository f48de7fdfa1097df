"""The result of another kernel in the place of one that was captured: its strides may be other ones.

What reads the result was captured for the strides of before: a `view` may not exist for the new ones, and what the
graph returns has to have eager's. Most readers do not care (a transposition that is copied, a product), and a copy
would cost what the other kernel saves. So the readers are followed, by their fake tensors, until all is as it was.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from compiler.passes.rewrite.calls import changes_memory, tensor_of
from compiler.passes.rewrite.constants import memory_behind
from compiler.passes.rewrite.reasons import NotLegalError
from compiler.passes.rewrite.writer import Writer, evaluate


def in_layout_of(original: Node, result: Node, writer: Writer) -> Node:
    """`result` or, where a reader of `original` would see other strides, a copy of it that has the original's. Raises
    NotLegalError where there is none."""
    ours, eager = tensor_of(result), tensor_of(original)
    assert ours is not None and eager is not None
    same = ours.shape == eager.shape and ours.dtype == eager.dtype and ours.device == eager.device
    if not same or ours.requires_grad != eager.requires_grad:
        raise NotLegalError("layout.not_kept", f"{tuple(ours.shape)} in {ours.dtype} on {ours.device}")
    if ours.stride() == eager.stride() or _readers_do_not_care(original, result):
        return result
    if not eager.is_contiguous():
        raise NotLegalError("layout.not_kept", f"strides {eager.stride()}, not {ours.stride()}")
    return writer.call("contiguous", result)


def _readers_do_not_care(original: Node, result: Node) -> bool:
    values: dict[Node, Any] = {original: tensor_of(result)}
    nodes = list(original.graph.nodes)
    for node in nodes[nodes.index(original) + 1 :]:
        if changes_memory(node) and original in memory_behind(node):
            return False  # a copy of the one layout may be a view of the other
        if not any(read in values for read in node.all_input_nodes):
            continue
        before = tensor_of(node)
        if before is None or node.op not in ("call_function", "call_method"):
            return False
        after = _evaluated(node, values)
        if after is None or after.shape != before.shape or after.dtype != before.dtype:
            return False
        if after.stride() != before.stride():
            values[node] = after
    return True


def _evaluated(node: Node, values: dict[Node, Any]) -> torch.Tensor | None:
    def value_of(read: Node) -> Any:
        return values.get(read, read.meta.get("example_value"))

    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), value_of)
    try:
        value = evaluate(node.target, args, kwargs)
    except (RuntimeError, TypeError, ValueError):
        return None
    return value if isinstance(value, torch.Tensor) else None
