"""Save the indices of a maximum over windows for the backward graph in one byte each instead of eight.

Autograd keeps for each window which element of the image was the largest, as a number of 64 bits. Where it lies inside
of its window says the same, and fits into 8 bits. So before a joint graph is split, the gradient gets those numbers by
way of bytes, and the split, which saves as few bytes as it can, saves these:

    place = ...                                           place = ...
    gradient = max_pool_backward(..., place)      ->      byte = (place's row and column in its window).to(int8)
                                                          gradient = max_pool_backward(..., place of byte)

Both conversions are arithmetic on one element: they become part of the kernel that finds the largest and of the one
that computes the gradient. Where windows overlap, that one would do it again for each window that an element is in,
which takes longer than the bytes: those numbers stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.passes.rewrite.joint import call_beside, note_rewrite

aten = torch.ops.aten

_BACKWARD = aten.max_pool2d_with_indices_backward.default
_LARGEST_BYTE = torch.iinfo(torch.int8).max
_LARGEST_IMAGE = torch.iinfo(torch.int32).max


def save_indices_as_bytes(joint: GraphModule) -> None:
    """Change, in place, every gradient of `joint` of a maximum over windows of known sizes that do not overlap."""
    for node in list(joint.graph.nodes):
        windows = _windows_of(node) if node.target is _BACKWARD else None
        if windows is not None:
            short = windows.shortened(_Writer(node), node.args[-1])
            node.args = (*node.args[:-1], short)
            note_rewrite(node, "pooling places", "pooling.bytes")


class _Writer:
    """Adds calls in front of `before`, first to the forward graph and then to the backward one."""

    def __init__(self, before: Node) -> None:
        self.before, self.is_backward = before, False

    def __call__(self, target: Any, *arguments: Any, **keywords: Any) -> Node:
        with self.before.graph.inserting_before(self.before):
            node = call_beside(self.before, target, *arguments, **keywords)
        node.meta.pop("partitioner_tag", None)
        if self.is_backward:  # not to be saved in the place of the bytes
            node.meta["partitioner_tag"] = "must_be_in_backward"
        return node


@dataclass(frozen=True)
class _Windows:
    """Windows over the rows and columns of an image: everything as pairs, rows first."""

    image: tuple[int, int]
    count: tuple[int, int]
    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    def shortened(self, call: _Writer, places: Node) -> Node:
        """`places`, from their bytes."""
        whole = call(aten._to_copy.default, places, dtype=torch.int32)
        row = call(aten.div.Tensor_mode, whole, self.image[1], rounding_mode="floor")
        column = call(aten.sub.Tensor, whole, call(aten.mul.Tensor, row, self.image[1]))
        inside = [
            self._divided(call, call(aten.sub.Tensor, at, self._start(call, axis)), self.dilation[axis])
            for axis, at in enumerate((row, column))
        ]
        number = call(aten.add.Tensor, call(aten.mul.Tensor, inside[0], self.kernel[1]), inside[1])
        byte = call(aten._to_copy.default, number, dtype=torch.int8)
        call.is_backward = True
        number = call(aten._to_copy.default, byte, dtype=torch.int32)
        down = call(aten.div.Tensor_mode, number, self.kernel[1], rounding_mode="floor")
        first = call(
            aten.add.Tensor, call(aten.mul.Tensor, self._start(call, 0), self.image[1]), self._start(call, 1)
        )  # fmt: skip
        across = call(aten.add.Tensor, first, call(aten.mul.Tensor, number, self.dilation[1]))
        # A row further down, and as many columns back as a row of the window has.
        step = self.dilation[0] * self.image[1] - self.kernel[1] * self.dilation[1]
        place = call(aten.add.Tensor, across, call(aten.mul.Tensor, down, step))
        return call(aten._to_copy.default, place, dtype=torch.int64)

    def _start(self, call: _Writer, axis: int) -> Node:
        """The first row or column of each window, which may lie before the image."""
        first, step = -self.padding[axis], self.stride[axis]
        device = call.before.meta["val"].device
        last = first + step * self.count[axis]
        starts = call(aten.arange.start_step, first, last, step, dtype=torch.int32, device=device)
        return call(aten.unsqueeze.default, starts, 1) if axis == 0 else starts

    def _divided(self, call: _Writer, value: Node, divisor: int) -> Node:
        return value if divisor == 1 else call(aten.div.Tensor_mode, value, divisor, rounding_mode="floor")


def _windows_of(node: Node) -> _Windows | None:
    """None where a size is known in a call only, where windows overlap, or where one of them or the image has too many
    elements."""
    gradient, image, kernel, stride, padding, dilation, _, places = node.args
    assert isinstance(gradient, Node) and isinstance(image, Node) and isinstance(places, Node)
    sizes = (*image.meta["val"].shape[-2:], *gradient.meta["val"].shape[-2:])
    if not all(isinstance(size, int) for size in sizes) or places.meta["val"].shape != gradient.meta["val"].shape:
        return None
    height, width, rows, columns = sizes
    pairs = [_pair(value) for value in (kernel, stride or kernel, padding, dilation)]
    if pairs[0][0] * pairs[0][1] > _LARGEST_BYTE or height * width > _LARGEST_IMAGE:
        return None
    if any((size - 1) * dilated + 1 > step for size, step, _, dilated in zip(*pairs, strict=True)):
        return None
    return _Windows((height, width), (rows, columns), *pairs)


def _pair(value: Any) -> tuple[int, int]:
    first, last = (value, value) if isinstance(value, int) else (value[0], value[-1])
    return int(first), int(last)
