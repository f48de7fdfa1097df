"""Save the indices of a maximum over windows for the backward graph in four bytes each instead of eight.

    gradient = max_pool_backward(..., place)      ->      half = place.to(int32)
                                                          gradient = max_pool_backward(..., half.to(int64))

Autograd keeps for each window which element of the image was the largest, as a number of 64 bits. The split of the
joint graph, which saves as few bytes as it can, saves the short ones. Both conversions become part of the kernel that
finds the largest and of the one that computes the gradient.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from compiler.passes.rewrite.joint import call_beside, note_rewrite

aten = torch.ops.aten

_BACKWARD = aten.max_pool2d_with_indices_backward.default


def save_short_indices(joint: GraphModule) -> None:
    """Change, in place, every gradient of `joint` of a maximum over windows of an image of a known size."""
    for node in joint.graph.find_nodes(op="call_function", target=_BACKWARD):
        height, width = node.args[1].meta["val"].shape[-2:]
        if not isinstance(height, int) or not isinstance(width, int) or height * width > torch.iinfo(torch.int32).max:
            continue
        with joint.graph.inserting_before(node):
            short = call_beside(node, aten._to_copy.default, node.args[-1], dtype=torch.int32)
            whole = call_beside(node, aten._to_copy.default, short, dtype=torch.int64)
        short.meta.pop("partitioner_tag", None)
        whole.meta["partitioner_tag"] = "must_be_in_backward"  # not to be saved in the place of the short ones
        node.update_arg(len(node.args) - 1, whole)
        note_rewrite(node, "pooling places", "pooling.bytes")
