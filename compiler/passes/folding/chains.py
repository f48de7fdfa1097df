"""Convolutions whose result goes through products and sums of each channel, and nothing else, into a ReLU.

relu( conv * a + b )                        a, b: one number a channel, or one for all
relu( conv * a + b + r )                    r: a tensor of the same shape
relu( conv * a + b + other * c + d )        other: a second convolution, whose product and sum are folded as well
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from compiler.lowering.convolutions import is_pixel_product

aten = torch.ops.aten

#: With so many, folded filters of one pixel were slower than products on an H200 (batch 1 of ResNet-50's stages, 272 us
#: for 260), and faster than a pass of their own with 32 times as many.
FEW_PIXELS = 4096

_STEPS = {
    aten.add.Tensor: "add", aten.sub.Tensor: "sub", aten.mul.Tensor: "mul", aten.div.Tensor: "div",
    aten._to_copy.default: "cast",
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One product or sum on the way from a convolution: what it does with `operand`."""

    node: Node
    kind: str
    operand: Any


@dataclass(frozen=True)
class Chain:
    """A convolution, and the steps on the way from it, first to last. Nothing else reads what lies between."""

    convolution: Node
    steps: tuple[Step, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.convolution, *(step.node for step in self.steps))


@dataclass(frozen=True)
class Epilogue:
    """A ReLU of a chain, and of what is added to it last: nothing, a tensor, or a second chain."""

    relu: Node
    chain: Chain
    added: Node | Chain | None = None
    #: The sum that adds it, if there is one.
    sums: tuple[Node, ...] = ()


def find_epilogue(relu: Node) -> Epilogue | None:
    """What of a ReLU's argument can be folded into a convolution."""
    source = relu.args[0]
    if not _is_image(relu) or not _is_only_read_by_one(source):
        return None
    assert isinstance(source, Node)
    chain = chain_to(source)
    if chain is not None and source.meta["val"].dtype == relu.meta["val"].dtype:
        return Epilogue(relu, chain) if _is_foldable(chain.convolution) and chain.steps else None
    if source.target is not aten.add.Tensor or source.kwargs or not _are_alike(source.args, relu):
        return None
    operands: tuple[Any, ...] = source.args
    if operands[0] is operands[1]:
        return None
    for one, other in (operands, operands[::-1]):
        chain = chain_to(one)
        if chain is not None and _is_foldable(chain.convolution):
            second = chain_to(other)
            return Epilogue(relu, chain, second if second is not None and second.steps else other, (source,))
    return None


def chain_to(node: Any) -> Chain | None:
    """The chain that ends with `node`, with a result of its convolution's dtype."""
    steps: list[Step] = []
    last = node
    while _is_only_read_by_one(node):
        if node.target is aten.convolution.default:
            value = node.meta["val"]
            is_one = len(value.shape) == 4 and not node.args[6] and value.dtype == last.meta["val"].dtype
            return Chain(node, tuple(reversed(steps))) if is_one else None
        step = _step(node)
        if step is None:
            return None
        steps.append(step[0])
        node = step[1]
    return None


def _step(node: Node) -> tuple[Step, Node] | None:
    """The last step of a chain, and the node before it."""
    kind = _STEPS.get(node.target) if _is_image(node) else None  # type: ignore[call-overload]
    if kind == "cast":
        is_plain = set(node.kwargs) == {"dtype"} and node.meta["val"].dtype.is_floating_point
        return (Step(node, kind, None), node.args[0]) if is_plain else None  # type: ignore[return-value]
    if kind is None or node.kwargs or len(node.args) != 2:
        return None
    one, other = node.args
    if kind in ("add", "mul") and _is_for_each_channel(one, node):
        one, other = other, one
    if not isinstance(one, Node) or not _is_for_each_channel(other, node):
        return None
    return Step(node, kind, other), one


def _is_image(node: Node) -> bool:
    """Whether it is of (batch, channels, height, width), all known: to ask for others makes guards."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() == 4 and all(isinstance(size, int) for size in value.shape)


def _is_for_each_channel(operand: Any, of: Node) -> bool:
    """Whether it is a number, or has one for each channel of images."""
    if isinstance(operand, int | float):
        return True
    if not isinstance(operand, Node) or not isinstance(operand.meta.get("val"), torch.Tensor):
        return False
    shape, channels = operand.meta["val"].shape, of.meta["val"].shape[1]
    is_float = operand.meta["val"].dtype.is_floating_point
    return is_float and tuple(shape) in ((channels, 1, 1), (1, channels, 1, 1), (1, 1, 1), (1, 1, 1, 1), ())


def _is_only_read_by_one(node: Any) -> bool:
    return isinstance(node, Node) and len(node.users) == 1 and node.op == "call_function"


def _are_alike(operands: tuple[Any, ...], result: Node) -> bool:
    """Whether two tensors are added that are of the result's shape and dtype."""
    nodes = [node for node in operands if isinstance(node, Node)]
    wanted = result.meta["val"]
    alike = [node.meta["val"].shape == wanted.shape and node.meta["val"].dtype == wanted.dtype for node in nodes]
    return len(nodes) == 2 and all(alike)


def _is_foldable(convolution: Node) -> bool:
    """Whether the library is expected to have a kernel that goes on from it: whole vectors of channels, no groups,
    and no bfloat16 (measured on an H200 with torch 2.11: ATen's own operators run in its place, later than without).
    Filters of one pixel on few pixels take what follows as products, without a filter computed anew."""
    result, weight = convolution.meta["val"], convolution.args[1].meta["val"]  # type: ignore[union-attr]
    vector = 8 if result.dtype == torch.float16 else 4
    sizes = (*weight.shape, *result.shape)
    return bool(
        result.dtype in (torch.float16, torch.float32)
        and all(isinstance(size, int) for size in sizes)
        and convolution.args[8] == 1
        and weight.shape[0] % vector == 0
        and weight.shape[1] % vector == 0
        and not _is_small_product(convolution)
    )


def _is_small_product(convolution: Node) -> bool:
    _, weight, _, stride, padding, _, is_transposed, _, groups = convolution.args
    result, filters = convolution.meta["val"], weight.meta["val"]  # type: ignore[union-attr]
    pixels = result.shape[0] * result.shape[2] * result.shape[3]
    is_product = is_pixel_product(filters.shape, result.dtype, stride, padding, is_transposed, groups)  # type: ignore[arg-type]
    return bool(is_product and pixels <= FEW_PIXELS)
