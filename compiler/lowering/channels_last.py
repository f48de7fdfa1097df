"""Lowering with some convolutions channels-last: what they read is converted, what follows them takes their order.

    y = aten.convolution(x, w)           y gets strides (C*H*W, 1, C*W, C), x and w are copied to such strides
    z = aten.relu(y)                     eager would give z the order of y, so z gets the order that y has here
    out = z                              a copy with eager's strides, which fuses into the loop of z

Nothing but strides differs from lowering without it, and what the graph returns has eager's. A library call of another
kind gets its arguments as eager has them, for what it returns may depend on that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.fx

from compiler.ir.nodes import Layout, LoopNode, TensorArgument
from compiler.ir.size import Integer, hint
from compiler.lowering.eager import EagerTensor
from compiler.lowering.one_pixel import REASON, as_pixel_product
from compiler.lowering.values import TensorValue, of_buffer

if TYPE_CHECKING:
    from compiler.lowering.builder import Builder
    from compiler.lowering.loop_builder import LoopBuilder

aten = torch.ops.aten

What = Literal["image", "gradient", "filter", "argument", "output"]
#: The calls that can work channels-last, and what their first arguments are.
TAKEN: dict[Any, tuple[What, ...]] = {aten.convolution_backward.default: ("gradient", "image", "filter")}

#: Library calls that take a matrix whichever way it lies.
PRODUCTS = frozenset({aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.dot, aten.vdot})


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

    def _join(self, convolutions: Iterable[str]) -> str:
        first, *others = dict.fromkeys(map(self.region_of, convolutions))
        for other in others:
            self._joined[other] = first
        return first

    # --- convolutions

    def convolution(self, build: Builder, target: Any, args: Sequence[Any], reason: str) -> Any:
        """The call of the current node with image and filter channels-last, and so its results of images."""
        kinds = TAKEN.get(target, ("image", "filter"))
        kinds += tuple("argument" for _ in args[len(kinds) :])
        arguments = tuple(
            self._argument(build, value, what) if what != "argument" or _is_images(value) else value
            for value, what in zip(args, kinds, strict=True)
        )
        value = self._call(build, target, arguments, reason)
        tensors = [argument for argument in arguments if isinstance(argument, TensorArgument)]
        sources = [self.moved[tensor.buffer] for tensor in tensors if tensor.buffer in self.moved]
        region = self._join([build.origin, *sources])
        for made in value if isinstance(value, tuple) else (value,):
            if _is_images(made):
                self.moved[made.buffer] = region
        return value

    def joined(self, build: Builder, value: TensorValue, image: TensorValue) -> None:
        """Remember that `value`, made of `image` by loops and a product, is channels-last in place of a convolution."""
        assert value.buffer is not None
        sources = [self.moved[image.buffer]] if image.buffer in self.moved else []
        self.moved[value.buffer] = self._join([build.origin, *sources])

    def image_of(self, build: Builder, value: TensorValue) -> TensorValue:
        """An image as the current node, which is a loop in place of a convolution, reads it: channels-last."""
        taken = self._argument(build, value, "image")
        return of_buffer(taken.buffer, taken.layout)

    def layout_of_result(self, build: Builder) -> Layout:
        """The layout of the current node's images."""
        result = build.eager
        return Layout(result.shape, channels_last_strides(result.shape), result.dtype)

    def _call(self, build: Builder, target: Any, arguments: Sequence[Any], reason: str) -> Any:
        result = build.eager
        wanted = [_laid_out(value) for value in result] if isinstance(result, list | tuple) else _laid_out(result)
        if not isinstance(wanted, list):
            product = as_pixel_product(target, arguments, result, wanted.stride())
            if product is not None:
                matrix: TensorValue = build.extern(
                    product.target, product.arguments, {}, is_fallback=False, reason=REASON, result=product.result
                )
                assert matrix.buffer is not None
                return of_buffer(matrix.buffer, product.images)
        return build.extern(target, arguments, {}, is_fallback=False, reason=reason, result=wanted)

    def _argument(self, build: Builder, value: TensorValue, what: What) -> TensorArgument:
        value = build.where_eager_has_it(value)
        layout, wanted = value.layout(), channels_last_strides(value.shape)
        if layout is not None and value.buffer is not None and lies_alike(value.shape, layout.stride, wanted):
            return TensorArgument(value.buffer, replace(layout, stride=wanted))
        stored = build.materialise(value, Layout(value.shape, wanted, value.dtype), label="channels_last")
        assert stored.buffer is not None
        self._note(Conversion(stored.buffer, value.buffer or "", what, build.origin))
        self.moved.setdefault(stored.buffer, build.origin)
        return TensorArgument(stored.buffer, build.graph.buffers[stored.buffer])

    def _note(self, conversion: Conversion) -> None:
        if all(known.name != conversion.name for known in self.conversions):
            self.conversions.append(conversion)

    # --- loops

    def layout_for(
        self, shape: tuple[Integer, ...], eager: tuple[Integer, ...], build: LoopBuilder
    ) -> tuple[Integer, ...]:
        """Strides for a result of the current node: where eager would keep the order of its largest argument, the order
        that this one has here."""
        found = [argument for argument in build.arguments if argument.rank == len(shape)]
        if not any(argument.buffer in self.moved for argument in found):
            return eager
        leader = max(found, key=lambda argument: (hint(argument.numel), argument.buffer in self.moved))
        layout, known = leader.layout(), build.eager_of.get(id(leader))
        if layout is None or known is None or leader.buffer not in self.moved or _is_repeated(layout):
            return eager
        if not _keeps_order(Layout(shape, eager, leader.dtype), known):
            return eager
        return dense_strides(shape, order_of(layout.shape, layout.stride))

    def made(self, node: LoopNode, eager: Sequence[Integer] | None) -> None:
        """Remember how a new loop's buffer lies, and that it brings together what it reads."""
        read = [self.moved[buffer] for buffer in sorted(node.read_buffers) if buffer in self.moved]
        if read:
            region = self._join(read)
            if eager is not None and not lies_alike(node.layout.shape, node.layout.stride, eager):
                self.moved[node.name] = region

    def forget(self, buffers: Container[str]) -> None:
        """Drop what is known of buffers that are none of these, after a lowering gave up half-way."""
        self.moved = {name: region for name, region in self.moved.items() if name in buffers}
        self.conversions = [conversion for conversion in self.conversions if conversion.name in buffers]

    # --- what must lie as in eager

    def as_eager(self, build: Builder, target: Any, arguments: Any) -> Any:
        """The arguments of a library call, each tensor with eager's strides; a product takes a matrix as it lies."""
        if isinstance(arguments, list | tuple):
            return type(arguments)(self.as_eager(build, target, item) for item in arguments)
        if isinstance(arguments, dict):
            return {key: self.as_eager(build, target, item) for key, item in arguments.items()}
        if not isinstance(arguments, TensorValue) or arguments.buffer not in self.moved:
            return arguments
        known, layout = build.eager_of.get(id(arguments)), arguments.layout()
        if known is None or 0 in known.stride() or (layout is not None and _takes_it(target, layout, known.stride())):
            return arguments
        stored = build.materialise(
            arguments, Layout(arguments.shape, known.stride(), arguments.dtype), label="contiguous"
        )
        build.eager_of.setdefault(id(stored), known)
        self.moved.pop(stored.buffer or "", None)
        self.converted_back(arguments, stored, "argument", build.origin)
        return stored

    def converted_back(self, value: TensorValue, copy: TensorValue, what: What, reader: str) -> None:
        """Note a copy of a moved tensor that has eager's strides."""
        if value.buffer in self.moved and copy.buffer is not None:
            self._note(Conversion(copy.buffer, value.buffer or "", what, reader))


def _is_images(value: Any) -> bool:
    return isinstance(value, TensorValue) and value.rank == 4


def _laid_out(result: Any) -> Any:
    """Eager's result of a convolution, channels-last if it is of images or filters."""
    if not isinstance(result, EagerTensor) or result.dim() != 4:
        return result
    return replace(result, strides=channels_last_strides(result.shape))


def _is_repeated(layout: Layout) -> bool:
    return any(step == 0 and size != 1 for step, size in zip(layout.stride, layout.shape, strict=True))


def _takes_it(target: Any, layout: Layout, eager: Sequence[Integer]) -> bool:
    if lies_alike(layout.shape, layout.stride, eager):
        return True
    is_product = getattr(target, "overloadpacket", None) in PRODUCTS
    return is_product and 1 in layout.stride[-2:]
