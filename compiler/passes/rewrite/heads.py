"""Keys and values of which each head is repeated for a group of the queries' heads, before torch's attention is called.

    repeated = k[:, :, None].expand(batch, 8, 4, length, depth).reshape(batch, 32, length, depth)
    scaled_dot_product_attention(q, repeated, ...)     ->     scaled_dot_product_attention(q, k, ..., enable_gqa=True)

Libraries repeat them where they give a mask, since no kernel takes both. Once the mask is gone, a kernel reads each
head where it is, as often as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from compiler.passes.rewrite.calls import (
    Called,
    argument,
    is_same_shape,
    is_same_size,
    operation,
    shape_of,
    tensor_of,
)
from compiler.passes.rewrite.layouts import in_layout_of
from compiler.passes.rewrite.reasons import NotLegalError
from compiler.passes.rewrite.writer import Writer, attention_settings, call_attention, undone_on_error


@dataclass(frozen=True)
class Repeated:
    """A tensor of (batch, heads, length, depth), and how often each head comes one after the other."""

    node: Node
    times: int


def repeats_heads(node: Node) -> bool:
    """Whether a node is a call of torch's attention without a mask, of keys and values that are repeated alike."""
    if operation(node) != "scaled_dot_product_attention" or tensor_of(node) is None:
        return False
    key, value = (_repeated(argument(node, position, name)) for position, name in ((1, "key"), (2, "value")))
    is_plain = argument(node, 3, "attn_mask") is None and not node.kwargs.get("enable_gqa")
    return is_plain and key is not None and value is not None and key.times == value.times


def read_heads_where_they_are(node: Node) -> Called:
    """Replace such a call; what was found is told. Raises NotLegalError where another kernel would be taken, and then
    changes nothing."""
    settings = attention_settings(node)
    key, value = _repeated(settings["key"]), _repeated(settings["value"])
    assert key is not None and value is not None
    writer = Writer(node.graph, node, node.meta.get("stack_trace") or "")
    with undone_on_error(writer):
        kernels = _kernels_of(settings, node)
        result = call_attention({**settings, "key": key.node, "value": value.node, "enable_gqa": True}, writer)
        if not kernels or kernels != writer.fused():
            told = ", ".join(sorted(writer.fused())) or "none that is fused"
            raise NotLegalError("call.heads_of_another_kernel", f"the kernel would be {told}")
        result = in_layout_of(node, result, writer)
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)
    heads = f"{shape_of(key.node)[1]} heads, each repeated {key.times} times"
    return Called("call.heads_where_they_are", f"{key.node.name} and {value.node.name} have {heads}")


def _kernels_of(settings: dict[str, Any], node: Node) -> frozenset[str]:
    """Which fused operators the call comes to as it is written."""
    writer = Writer(node.graph, node, "")
    call_attention(settings, writer)
    writer.undo()
    return writer.fused()


def _repeated(node: Any) -> Repeated | None:
    if tensor_of(node) is None or len(shape_of(node)) != 4:
        return None
    if operation(node) == "repeat_interleave":
        times, dim = argument(node, 1, "repeats"), argument(node, 2, "dim")
        is_plain = isinstance(times, int) and dim in (1, -3) and tensor_of(node.args[0]) is not None
        return Repeated(node.args[0], times) if is_plain and times > 1 else None
    if operation(node) not in ("reshape", "view", "flatten"):
        return None
    wide = node.args[0]
    single: Any = wide.args[0] if operation(wide) in ("expand", "broadcast_to") else None
    heads = _without_dimension(single)
    if heads is None or tensor_of(wide) is None or len(shape_of(wide)) != 5:
        return None
    batch, count, times, length, depth = shape_of(wide)
    if not isinstance(count, int) or not isinstance(times, int) or times < 2 or shape_of(single)[2] != 1:
        return None
    is_kept = is_same_shape(shape_of(heads), (batch, count, length, depth))
    return Repeated(heads, times) if is_kept and _are_merged(shape_of(node), shape_of(wide)) else None


def _are_merged(shape: tuple[Any, ...], wide: tuple[Any, ...]) -> bool:
    rest = is_same_shape((shape[0], *shape[2:]), (wide[0], *wide[3:]))
    return rest and is_same_size(shape[1], wide[1] * wide[2])


def _without_dimension(node: Any) -> Node | None:
    """What a call adds a dimension to, between the heads and the length."""
    if tensor_of(node) is None or not isinstance(node.args[0], Node) or tensor_of(node.args[0]) is None:
        return None
    if operation(node) == "unsqueeze":
        return node.args[0] if argument(node, 1, "dim") in (2, -3) and len(shape_of(node)) == 5 else None
    index = node.args[1] if operation(node) == "getitem" and isinstance(node.args[1], tuple) else ()
    full = slice(None)
    is_added = index[:3] == (full, full, None) and all(item == full for item in index[3:])
    return node.args[0] if is_added and len(shape_of(node)) == 5 else None
