"""The fused operator in place of attention written by hand."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from compiler.fx.fake_values import in_this_call
from compiler.passes.rewrite.attention import Attention
from compiler.passes.rewrite.calls import ATTENTION, changes_memory, is_same_size, shape_of, tensor_of
from compiler.passes.rewrite.masks import MaskPlan, plan_masks, wants_gradient, write_masks
from compiler.passes.rewrite.products import Operand
from compiler.passes.rewrite.reasons import NotLegalError
from compiler.passes.rewrite.writer import Writer, undone_on_error

_RANKS = (3, 4)

#: Numbers of a head up to which torch's quick kernels for GPUs take one.
WIDEST_HEAD = 256


def replace_attention(found: Attention) -> MaskPlan:
    """Write the fused operator before the last product, and have the product's readers read it; the calls that nothing
    reads any more are left for dead code elimination. Raises NotLegalError, and then changes nothing."""
    _check_tensors(found)
    _check_order(found)
    plan = plan_masks(found)
    stacks = [node.meta.get("stack_trace") or "" for node in sorted(set(found.calls))]
    writer = Writer(found.result.graph, found.result, "\n".join(filter(None, stacks)))
    with undone_on_error(writer):
        try:
            result = _write(found, plan, writer)
        except (RuntimeError, TypeError, ValueError) as error:
            raise NotLegalError("kernel.none", str(error).splitlines()[0]) from error
        if not writer.fused() or is_slow(writer.fused(), _depth(found)):
            raise NotLegalError("kernel.none", _arguments(found))
        _check_layout(result, found.result)
    found.result.replace_all_uses_with(result)
    return plan


def _depth(found: Attention) -> int:
    return max(in_this_call(operand.sizes()[-1]) for operand in (found.query, found.value))


def is_slow(kernels: frozenset[str], depth: int) -> bool:
    """Whether a head is so wide that only the memory-efficient kernel takes it, which then has not all of a result in
    registers. On an H200 latent attention of 16 x 128 heads of 512 numbers, which share 2,048 keys, takes 232 us so,
    the three products and a kernel for the softmax 51."""
    return depth > WIDEST_HEAD and kernels == {"_scaled_dot_product_efficient_attention"}


def _check_tensors(found: Attention) -> None:
    tensors = [tensor_of(operand.node) for operand in (found.query, found.key, found.value)]
    result = tensor_of(found.result)
    assert result is not None
    dtypes = [value.dtype for value in tensors if value is not None]
    if len(set(dtypes)) != 1 or result.dtype != dtypes[0] or not result.is_floating_point():
        raise NotLegalError("dtype.mixed", ", ".join(str(d).removeprefix("torch.") for d in (*dtypes, result.dtype)))
    for node in found.calls:
        value = tensor_of(node)
        if value is not None and torch.promote_types(value.dtype, dtypes[0]) != value.dtype:
            raise NotLegalError("dtype.mixed", f"{node.name} is {value.dtype}".replace("torch.", ""))
    masks = [tensor_of(node) for node in (*(m.node for m in found.masks), *(b for b, _ in found.biases))]
    devices = {value.device for value in (*tensors, *masks) if value is not None and value.dim()}
    if len(devices) > 1:
        raise NotLegalError("device.mixed", ", ".join(sorted(map(str, devices))))
    ranks = {len(operand.order) for operand in (found.query, found.key, found.value)}
    rank = len(shape_of(found.result))
    if rank not in _RANKS or max(ranks) != rank or len(found.query.order) != rank:
        raise NotLegalError("shape.rank", f"the result has {rank} dimensions")


def _check_order(found: Attention) -> None:
    """Everything is computed where the last product stands: nothing on the way there may change what it reads."""
    calls = set(found.calls)
    is_between = False
    for node in found.result.graph.nodes:
        is_between = is_between or node in calls
        if node is found.result:
            return
        if is_between and node not in calls and changes_memory(node):
            raise NotLegalError("memory.changed_meanwhile", f"{node.name} lies in between")


def _write(found: Attention, plan: MaskPlan, writer: Writer) -> Node:
    shape = shape_of(found.result)
    batch = [*found.query.sizes()[:-2]]
    query = _operand(found.query, batch, writer)
    key, value = (_operand(operand, batch, writer) for operand in (found.key, found.value))
    dtype = tensor_of(found.query.node).dtype  # type: ignore[union-attr]
    mask, empty = write_masks(plan, dtype, wants_gradient(found), writer)
    is_three = len(batch) == 1
    if is_three:
        query, key, value = (writer.call("unsqueeze", node, 1) for node in (query, key, value))
    settings: dict[str, Any] = {"attn_mask": None if mask is None else _aligned(mask, is_three, writer)}
    settings |= {"dropout_p": found.dropout, "is_causal": plan.is_causal, "scale": found.scale}
    result = writer.call(ATTENTION, query, key, value, **settings)
    if empty is not None:
        assert plan.fill is not None
        rows = _aligned(empty, is_three, writer)
        operands = (query, key, value) if plan.is_added else (value,)
        result = _with_lost_rows(result, rows, operands, plan.fill, wants_gradient(found), writer)
    if is_three:
        result = writer.call("squeeze", result, 1)
    result = writer.call("contiguous", result)
    if found.result_order is not None:
        result = writer.call("permute", result, found.result_order)
    if not _are_one(shape_of(result), shape):
        raise NotLegalError("shape.rank", f"the products broadcast to {tuple(shape)}")
    return result


def _are_one(ours: tuple[Any, ...], eager: tuple[Any, ...]) -> bool:
    """Whether shapes are equal in the call that is traced: a product of symbolic sizes is written in many ways."""
    return [in_this_call(size) for size in ours] == [in_this_call(size) for size in eager]


def _operand(operand: Operand, batch: list[Any], writer: Writer) -> Node:
    node = operand.node if operand.is_as_it_is else writer.call("permute", operand.node, operand.order)
    sizes = shape_of(node)
    if len(sizes) == len(batch) + 2 and all(map(is_same_size, sizes[:-2], batch)):
        return node
    if not all(isinstance(size, int) for size in (*sizes, *batch)):
        raise NotLegalError("shape.rank", f"{node.name} is broadcast over sizes that differ from call to call")
    return writer.call("expand", node, *batch, *sizes[-2:])


def _aligned(mask: Node, is_three: bool, writer: Writer) -> Node:
    """The mask with four dimensions, so that kernels need not guess which ones it lacks."""
    if is_three and len(shape_of(mask)) == 3:
        return writer.call("unsqueeze", mask, 1)
    while len(shape_of(mask)) < 4:
        mask = writer.call("unsqueeze", mask, 0)
    return mask


def _with_lost_rows(
    result: Node, empty: Node, operands: tuple[Node, ...], fill: float, is_training: bool, writer: Writer
) -> Node:
    """Rows that are masked altogether as they are by hand: the mean of all values, or NaN.

    The values come last of `operands`. So that NaN goes back to each operand that it goes back to by hand, and to the
    others not, such a row is a sum of the operands, which is multiplied by NaN where it is empty and by 1 elsewhere.
    """
    value = operands[-1]
    if fill != -math.inf:
        return writer.call(torch.where, empty, writer.call(torch.mean, value, -2, True), result)
    if not is_training:
        return writer.call(torch.where, empty, math.nan, result)
    lost = writer.call(torch.mean, value, -2, True)
    if len(operands) > 1:
        query, key = operands[:2]
        lost = writer.call(torch.add, lost, writer.call(torch.sum, query, -1, True))
        lost = writer.call(torch.add, lost, writer.call(torch.sum, key, (-2, -1), True))
    factor = writer.call(torch.where, empty, writer.call("new_full", value, (), math.nan), 1.0)
    return writer.call(torch.mul, writer.call(torch.where, empty, lost, result), factor)


def _check_layout(result: Node, original: Node) -> None:
    ours, eager = tensor_of(result), tensor_of(original)
    assert ours is not None and eager is not None
    sizes = tuple(map(in_this_call, eager.shape))
    strides = [(a, b) for size, a, b in zip(sizes, ours.stride(), eager.stride(), strict=True) if size != 1]
    if any(in_this_call(a) != in_this_call(b) for a, b in strides):
        raise NotLegalError("layout.not_kept", f"strides {tuple(eager.stride())}, not {tuple(ours.stride())}")
    if ours.dtype != eager.dtype or ours.device != eager.device or ours.requires_grad != eager.requires_grad:
        raise NotLegalError("layout.not_kept", f"{ours.dtype} on {ours.device}")


def _arguments(found: Attention) -> str:
    query = tensor_of(found.query.node)
    assert query is not None
    parts = [f"{query.dtype} on {query.device}".removeprefix("torch."), f"queries {tuple(found.query.sizes())}"]
    parts.append(f"values {tuple(found.value.sizes())}")
    return ", ".join([*parts, f"dropout {found.dropout:g}"] if found.dropout else parts)
