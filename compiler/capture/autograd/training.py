"""What a forward graph saves for its backward graph, and what the backward graph computes again instead.

AOTAutograd's min-cut partitioner decides it: of all tensors that the backward pass needs, it saves those whose bytes
are least and computes the others again from them. It copies nodes from the joint graph into both parts by name, so a
node of the backward graph that the forward graph has too is one that is computed again.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.fx.fake_values import hint_of, shown_size
from compiler.fx.lines import lines_of_node
from compiler.lowering.aliases import from_owner, viewed_by
from compiler.report import SavedTensor

aten = torch.ops.aten

#: Operators that the partitioner does not know, since TorchInductor takes some of them apart before. What our lowering
#: makes loops of is worth computing again, as what it knows is. (Not parts of a split: one saved part may be less than
#: the whole that all of them come from.)
VIEWS = (aten.diagonal, aten.unfold)
CHEAP = (aten.amin, aten.prod, aten.eye, aten.flip, aten.constant_pad_nd, aten.index_select)

#: How AOTAutograd names the gradients that a backward graph is called with.
TANGENT = "tangents_"


def saved_for_backward(forward: torch.fx.GraphModule, backward: torch.fx.GraphModule) -> list[SavedTensor]:
    """Each tensor that the backward graph reads of the forward graph, in the order in which it takes them.

    AOTAutograd puts what it saves after what the caller gets, and hands it to the backward graph in the same order.
    Raises ValueError where the two graphs are no such pair.
    """
    inputs = [node for node in backward.graph.nodes if node.op == "placeholder" and _is_tensor(node)]
    wanted = [node for node in inputs if not node.name.startswith(TANGENT)]
    results = torch.utils._pytree.tree_leaves(forward.graph.output_node().args)
    tensors = [node for node in results if isinstance(node, torch.fx.Node) and _is_tensor(node)]
    first_saved = len(tensors) - len(wanted)
    if first_saved < 0:
        raise ValueError("the backward graph takes more tensors than the forward graph gives")
    returned = set(tensors[:first_saved])
    return [_describe(*pair, pair[0] in returned) for pair in zip(tensors[first_saved:], wanted, strict=True)]


def recomputed_in_backward(forward: torch.fx.GraphModule, backward: torch.fx.GraphModule) -> list[str]:
    """Names of the operators that both graphs have: the backward graph computes them again. Views cost nothing."""
    in_forward = {node.name: node.target for node in forward.graph.nodes if node.op == "call_function"}
    return [
        node.name
        for node in backward.graph.nodes
        if node.op == "call_function"
        and in_forward.get(node.name) == node.target
        and _is_tensor(node)
        and viewed_by(node) is None
    ]


def _describe(node: torch.fx.Node, given: torch.fx.Node, is_returned: bool) -> SavedTensor:
    value = node.meta["val"]
    root = from_owner(node)[0]
    return SavedTensor(
        node=node.name,
        input=given.name,
        kind="input" if root.op in ("placeholder", "get_attr") else "output" if is_returned else "activation",
        shape=[shown_size(size) for size in value.shape],
        dtype=str(value.dtype).removeprefix("torch."),
        # What only a run tells is filled in when it is known (see `present_schedule`).
        bytes=max(hint_of(value.numel()), 0) * value.dtype.itemsize,
        lines=list(lines_of_node(node)),
    )


def _is_tensor(node: Any) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
