"""Lowering with some convolutions channels-last: what they read is converted, what follows them takes their order.

    y = aten.convolution(x, w)           y gets strides (C*H*W, 1, C*W, C), x and w are copied to such strides
    z = aten.relu(y)                     eager would give z the order of y, so z gets the order that y has here
    out = z                              a copy with eager's strides, which fuses into the loop of z

Nothing but strides differs from lowering without it, and what the graph returns has eager's. A library call of another
kind gets its arguments as eager has them, for what it returns may depend on that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.fx

from compiler.ir.nodes import Layout, LoopNode
from compiler.ir.size import Integer, hint
from compiler.lowering.eager import EagerTensor
from compiler.lowering.values import TensorValue

aten = torch.ops.aten

What = Literal["image", "gradient", "filter", "argument", "output"]


@dataclass(frozen=True)
class Conversion:
    """A copy into other strides: buffer `name`, made of `source` for the call or the output `reader`."""

    name: str
    source: str
    what: What
    reader: str


def channels_last_strides(shape: Sequence[Integer]) -> tuple[Integer, ...]:
    """Strides of a dense tensor of (images, channels, rows, columns) with the channels innermost."""
    return dense_strides(shape, (0, *range(2, len(shape)), 1))


def dense_strides(shape: Sequence[Integer], order: Sequence[int]) -> tuple[Integer, ...]:
    """Strides of a dense tensor whose dimensions lie in memory in the given order, slowest first."""
    strides: dict[int, Integer] = {}
    step: Integer = 1
    for dim in reversed(order):
        strides[dim] = step
        step = step * (1 if shape[dim] == 0 else shape[dim])
    return tuple(strides[dim] for dim in range(len(shape)))


def order_of(shape: Sequence[Integer], stride: Sequence[Integer]) -> tuple[int, ...]:
    """The dimensions in the order in which they lie in memory, slowest first."""
    return tuple(sorted(range(len(shape)), key=lambda dim: (-hint(stride[dim]), dim)))


def lies_alike(shape: Sequence[Integer], one: Sequence[Integer], other: Sequence[Integer]) -> bool:
    """Whether two dense tensors of a shape lie the same way in memory: only the stride of a dimension of one element
    may differ."""
    return all(size == 1 or a == b for size, a, b in zip(shape, one, other, strict=True))


def _keeps_order(result: Layout, argument: EagerTensor) -> bool:
    """Whether the dimensions of both lie in the same order, those of one element aside."""
    long = [d for d in range(len(result.shape)) if result.shape[d] != 1 and argument.shape[d] != 1]
    one, other = order_of(result.shape, result.stride), order_of(argument.shape, argument.stride())
    return [d for d in one if d in long] == [d for d in other if d in long]


class ChannelsLast:
    """The state of lowering one graph with `convolutions` channels-last.

    `moved` holds each buffer that does not lie as eager's would, with the convolution that stands for its region:
    convolutions belong to one region where a loop reads tensors of both. `inputs` are strides of those inputs that do
    not lie as eager's, by name; each is a region of its own to begin with. What the graph returns has eager's strides
    up to the output `own_outputs` (None: to the last); those after it are returned as they lie. Those of the
    convolutions that are in `windows` become products over the windows of the image."""

    def __init__(
        self,
        convolutions: Iterable[torch.fx.Node],
        inputs: Mapping[str, tuple[int, ...]] | None = None,
        own_outputs: int | None = None,
        windows: Iterable[torch.fx.Node] = (),
    ) -> None:
        self.convolutions = frozenset(convolutions)
        self.inputs = dict(inputs or {})
        self.own_outputs = own_outputs
        self.windows = frozenset(windows)
        self.moved: dict[str, str] = {name: name for name in self.inputs}
        self.conversions: list[Conversion] = []
        self._joined: dict[str, str] = {}

    def region_of(self, convolution: str) -> str:
        """The convolution that stands for all that hang together with this one."""
        while convolution in self._joined:
            convolution = self._joined[convolution]
        return convolution

    def join(self, convolutions: Iterable[str]) -> str:
        first, *others = dict.fromkeys(map(self.region_of, convolutions))
        for other in others:
            self._joined[other] = first
        return first

    def note(self, conversion: Conversion) -> None:
        if all(known.name != conversion.name for known in self.conversions):
            self.conversions.append(conversion)

    # --- loops

    def layout_for(
        self,
        shape: tuple[Integer, ...],
        eager: tuple[Integer, ...],
        arguments: Iterable[TensorValue],
        eager_of: Mapping[int, EagerTensor],
    ) -> tuple[Integer, ...]:
        """Strides for a result that a node makes of `arguments`, which eager's tensors are known of by their ids: where
        eager would keep the order of its largest argument, the order that this one has here."""
        found = [argument for argument in arguments if argument.rank == len(shape)]
        if not any(argument.buffer in self.moved for argument in found):
            return eager
        leader = max(found, key=lambda argument: (hint(argument.numel), argument.buffer in self.moved))
        layout, known = leader.layout(), eager_of.get(id(leader))
        if layout is None or known is None or leader.buffer not in self.moved or _is_repeated(layout):
            return eager
        if not _keeps_order(Layout(shape, eager, leader.dtype), known):
            return eager
        return dense_strides(shape, order_of(layout.shape, layout.stride))

    def made(self, node: LoopNode, eager: Sequence[Integer] | None) -> None:
        """Remember how a new loop's buffer lies, and that it brings together what it reads."""
        read = [self.moved[buffer] for buffer in sorted(node.read_buffers) if buffer in self.moved]
        if read:
            region = self.join(read)
            if eager is not None and not lies_alike(node.layout.shape, node.layout.stride, eager):
                self.moved[node.name] = region

    def forget(self, buffers: Container[str]) -> None:
        """Drop what is known of buffers that are none of these, after a lowering gave up half-way."""
        self.moved = {name: region for name, region in self.moved.items() if name in buffers}
        self.conversions = [conversion for conversion in self.conversions if conversion.name in buffers]

    def converted_back(self, value: TensorValue, copy: TensorValue, what: What, reader: str) -> None:
        """Note a copy of a moved tensor that has eager's strides."""
        if value.buffer in self.moved and copy.buffer is not None:
            self.note(Conversion(copy.buffer, value.buffer or "", what, reader))


def _is_repeated(layout: Layout) -> bool:
    return any(step == 0 and size != 1 for step, size in zip(layout.stride, layout.shape, strict=True))
