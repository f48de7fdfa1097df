"""Replacing calls in the joint graph of a training step, before it is split, and the records of that.

A record is made at the node that came of it, which AOTAutograd puts into the forward graph, the backward graph or both:
each graph's report has those of its own nodes. Two short rewrites are here, and what has to be saved for both passes to
agree:

    gradient = max_pool_backward(..., index)             ->     half = index.to(int32)
                                                                gradient = max_pool_backward(..., half.to(int64))
    attention_backward(gradient, q, k, v, result, ...)   ->     attention_backward(gradient in result's layout, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from compiler.fx.notes import REWRITTEN, lines_noted
from compiler.ir.ops import HALF_TYPES
from compiler.passes.rewrite.reasons import rewrite_record
from compiler.passes.writing import call_beside
from compiler.report import Rewrite, Subject

aten = torch.ops.aten


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


def rewrites_of(graph: Graph) -> Iterable[Rewrite]:
    """Those that a graph split from a joint graph has the results of."""
    for node in graph.nodes:
        if node.op == "call_function" and REWRITTEN in node.meta:
            what, reason = node.meta[REWRITTEN]
            yield rewrite_record(what, reason, f"{node.name} came of it", lines_noted(node), is_replaced=True)


def save_short_indices(joint: GraphModule) -> None:
    """Have indices of maxima over windows of images of known sizes saved in four bytes each instead of eight, in place.

    Autograd keeps for each window which element of the image was the largest. The split of the joint graph, which saves
    as few bytes as it can, saves the short ones. Both conversions become part of the kernel that finds the largest and
    of the one that computes the gradient."""
    for node in joint.graph.find_nodes(op="call_function", target=aten.max_pool2d_with_indices_backward.default):
        if node.meta.get("partitioner_tag") != "is_backward":
            continue  # a gradient that the forward pass computes
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


#: What gives one of the elements that it takes.
_ONE_OF_THEM = frozenset({
    aten.amax.default, aten.amin.default, aten.max.default, aten.min.default, aten.median.default,
    aten.nanmedian.default, aten.scatter_reduce.two, aten.index_reduce.default,
})  # fmt: skip


def save_what_is_searched(joint: GraphModule) -> None:
    """Have a tensor saved of whose elements a gradient belongs to those that equal their maximum, minimum or median.

    Computed again, from what was rounded to a half type when it was saved, the elements may be off by a digit. Then
    none is the one that is looked for, and the gradient is divided by zero. Where no half type is on the way, they are
    the same: each sum and product is rounded in every kernel, and reductions are saved."""
    for equal in joint.graph.find_nodes(op="call_function", target=aten.eq.Tensor):
        if equal.meta.get("partitioner_tag") != "is_backward":
            continue
        compared = _taken_from_forward(equal)
        if not any(node.target in _ONE_OF_THEM for node in compared):
            continue
        for node in compared:
            is_searched = node.target not in _ONE_OF_THEM and node.meta["val"].is_floating_point()
            if is_searched and _is_made_of_half_types(node):
                node.meta.setdefault("recompute", CheckpointPolicy.MUST_SAVE)


def _taken_from_forward(node: Node) -> list[Node]:
    """The tensors of the forward pass that a node of the backward pass is computed from, without their aliases."""
    found: dict[Node, None] = {}
    waiting = list(node.all_input_nodes)
    while waiting:
        source = waiting.pop()
        if source.op != "call_function":
            continue
        if source.meta.get("partitioner_tag") == "is_forward" and source.target != aten.alias.default:
            found[source] = None
        else:
            waiting += source.all_input_nodes
    return list(found)


def _is_made_of_half_types(node: Node) -> bool:
    """Whether a call on the way from the graph's inputs to the node's value, or this one, gives a half type."""
    waiting, seen = [node], set()
    while waiting:
        source = waiting.pop()
        if source.op == "call_function" and source not in seen:
            if getattr(source.meta.get("val"), "dtype", None) in HALF_TYPES:
                return True
            seen.add(source)
            waiting += source.all_input_nodes
    return False


def lay_gradients_out(joint: GraphModule) -> None:
    """Copy every gradient that cuDNN's attention is differentiated from into the layout of the attention's result, in
    place, where it has another one.

    PyTorch keeps the plans that cuDNN made by the layouts of queries, keys, values and bias (MHAParams in ATen's
    cudnn/MHA.cpp of torch 2.11), and not by that of the gradient: a plan that was made for one layout is run on
    another, and gives wrong gradients without a word. Autograd's own gradients mostly have the result's layout, and
    AOTAutograd's are contiguous where the result is returned as it is."""
    backward = aten._scaled_dot_product_cudnn_attention_backward.default
    for node in joint.graph.find_nodes(op="call_function", target=backward):
        gradient, result = node.args[0], node.args[4]
        values: tuple[torch.Tensor, torch.Tensor] = (gradient.meta["val"], result.meta["val"])
        sizes = zip(values[0].shape, *(value.stride() for value in values), strict=True)
        if all(one == other for size, one, other in sizes if size != 1):
            continue
        strides = values[1].stride()
        outer_to_inner = sorted(range(len(strides)), key=lambda dim: strides[dim], reverse=True)
        back = sorted(range(len(strides)), key=outer_to_inner.__getitem__)
        with joint.graph.inserting_before(node):
            permuted = call_beside(node, aten.permute.default, gradient, outer_to_inner)
            laid_out = call_beside(node, aten.clone.default, permuted, memory_format=torch.contiguous_format)
            node.update_arg(0, call_beside(node, aten.permute.default, laid_out, back))
