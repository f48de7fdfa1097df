"""Calls of torch's own attention, given a mask that says the same in every call.

    mask = (arange(197) + 0 >= 0)[None, None, :, None].expand(32, 1, 197, 197)
    scaled_dot_product_attention(q, k, v, mask)       ->       scaled_dot_product_attention(q, k, v)

Libraries make such masks so that one program serves all cases. Kernels that take a mask are slower than those that take
none, some take none at all, and none of them takes one whose last dimension is a view of one element (as above): torch
then computes the scores in memory. A mask that remains is written out for such a kernel, once.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch.fx import Node

from compiler.passes.rewrite.calls import (
    Called,
    argument,
    operation,
    shape_of,
    tensor_of,
)
from compiler.passes.rewrite.constants import constant_of
from compiler.passes.rewrite.layouts import in_layout_of
from compiler.passes.rewrite.patterns import attended_by, is_lower_triangle, leaves_nothing_out
from compiler.passes.rewrite.reasons import NotLegalError
from compiler.passes.rewrite.writer import Writer, attention_settings, call_attention, undone_on_error

#: What is known of a mask: it leaves nothing out, all but the past, something else, or it is not the same in each call.
Pattern = Literal["ones", "past", "other", "varies"]


def is_masked_call(node: Node) -> bool:
    """Whether a node is a call of torch's attention with a mask."""
    is_call = operation(node) == "scaled_dot_product_attention" and tensor_of(node) is not None
    return is_call and tensor_of(argument(node, 3, "attn_mask")) is not None


def simplify_mask(node: Node) -> Called:
    """Put a call with a simpler mask, or with none, before `node`, if there is one, and have its readers read it.
    Raises NotLegalError where the mask stays, and then changes nothing."""
    mask: Node = argument(node, 3, "attn_mask")
    settings = attention_settings(node)
    if settings.get("is_causal"):
        raise NotLegalError("call.mask_beside_causal", f"{mask.name} is given beside is_causal")
    found, changes = _found_in(mask, node)
    writer = Writer(node.graph, node, node.meta.get("stack_trace") or "")
    with undone_on_error(writer):
        if found.reason == "call.mask_written_out":
            changes = {"attn_mask": _written_out(mask, node, writer)}
        result = call_attention({**settings, **changes}, writer)
        if found.reason == "call.mask_written_out" and not writer.fused():
            raise NotLegalError("call.mask_varies", f"{mask.name}, and no fused kernel takes these arguments")
        result = in_layout_of(node, result, writer)
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)
    return found


def _found_in(mask: Node, node: Node) -> tuple[Called, dict[str, Any]]:
    """What the mask is, and the arguments of the call that say so."""
    value = tensor_of(mask)
    assert value is not None
    shape = "x".join(str(size) for size in value.shape)
    query, key = (shape_of(argument(node, position, name)) for position, name in ((0, "query"), (1, "key")))
    pattern = _pattern_of(mask, node, query[-2], key[-2])
    if pattern == "ones":
        return Called("call.mask_of_ones", f"{mask.name} ({shape}) leaves no score out"), {"attn_mask": None}
    if pattern == "past":
        told = Called("call.mask_is_causal", f"{mask.name} ({shape}) is the lower triangle")
        return told, {"attn_mask": None, "is_causal": True}
    if value.is_cuda and value.stride(-1) != 1 and not value.requires_grad:
        return Called("call.mask_written_out", f"{mask.name} ({shape}) has the strides {value.stride()}"), {}
    if pattern == "varies":
        raise NotLegalError("call.mask_varies", f"{mask.name} ({shape})")
    raise NotLegalError("call.mask_of_other_form", f"{mask.name} ({shape})")


def _pattern_of(mask: Node, node: Node, queries: Any, keys: Any) -> Pattern:
    known = constant_of(mask, node)
    if known is None:
        return "varies"
    attended = attended_by(known)
    if attended is not None and leaves_nothing_out(attended):
        return "ones"
    return "past" if attended is not None and is_lower_triangle(attended, queries, keys) else "other"


def _written_out(mask: Node, node: Node, writer: Writer) -> Node:
    """The mask in memory, once for all heads and sequences that share it, and added. A row of a boolean mask of which
    nothing is left is zero by the rules, which not every kernel that is given a boolean one knows."""
    value = tensor_of(mask)
    assert value is not None
    for dim in range(value.dim() - 2):
        if value.stride(dim) == 0:
            mask = writer.call("narrow", mask, dim, 0, 1)
    if value.dtype != torch.bool:
        return writer.call("contiguous", mask)
    zero = writer.call("new_zeros", argument(node, 0, "query"), ())
    return writer.call("contiguous", writer.call(torch.where, mask, zero, -math.inf))
