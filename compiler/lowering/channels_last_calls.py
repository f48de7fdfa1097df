"""Calls of convolutions that work channels-last: what they read is converted, what they give is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from compiler.ir.nodes import Layout, TensorArgument
from compiler.lowering.builder import Builder
from compiler.lowering.channels_last import ChannelsLast, Conversion, What, channels_last_strides, lies_alike
from compiler.lowering.eager import EagerTensor
from compiler.lowering.one_pixel import pixel_product
from compiler.lowering.values import TensorValue, of_buffer

aten = torch.ops.aten

#: The calls that can work channels-last, and what their first arguments are.
TAKEN: dict[Any, tuple[What, ...]] = {aten.convolution_backward.default: ("gradient", "image", "filter")}


def convolution(build: Builder, layouts: ChannelsLast, target: Any, args: Sequence[Any], reason: str) -> Any:
    """The call of the current node with image and filter channels-last, and so its results of images."""
    kinds = TAKEN.get(target, ("image", "filter"))
    kinds += tuple("argument" for _ in args[len(kinds) :])
    arguments = tuple(
        _argument(build, layouts, value, what) if what != "argument" or _is_images(value) else value
        for value, what in zip(args, kinds, strict=True)
    )
    value = _call(build, target, arguments, reason)
    tensors = [argument for argument in arguments if isinstance(argument, TensorArgument)]
    sources = [layouts.moved[tensor.buffer] for tensor in tensors if tensor.buffer in layouts.moved]
    region = layouts.join([build.origin, *sources])
    for made in value if isinstance(value, tuple) else (value,):
        if _is_images(made):
            layouts.moved[made.buffer] = region
    return value


def joined(build: Builder, layouts: ChannelsLast, value: TensorValue, image: TensorValue) -> None:
    """Remember that `value`, made of `image` by loops and a product, is channels-last in place of a convolution."""
    assert value.buffer is not None
    sources = [layouts.moved[image.buffer]] if image.buffer in layouts.moved else []
    layouts.moved[value.buffer] = layouts.join([build.origin, *sources])


def image_of(build: Builder, layouts: ChannelsLast, value: TensorValue) -> TensorValue:
    """An image as the current node, which is a loop in place of a convolution, reads it: channels-last."""
    taken = _argument(build, layouts, value, "image")
    return of_buffer(taken.buffer, taken.layout)


def layout_of_result(build: Builder) -> Layout:
    """The layout of the current node's images."""
    result = build.eager
    return Layout(result.shape, channels_last_strides(result.shape), result.dtype)


def _call(build: Builder, target: Any, arguments: Sequence[Any], reason: str) -> Any:
    result = build.eager
    wanted = [_laid_out(value) for value in result] if isinstance(result, list | tuple) else _laid_out(result)
    if target is aten.convolution.default:
        product = pixel_product(build, arguments, wanted.stride())
        if product is not None:
            return product
    return build.extern(target, arguments, {}, is_fallback=False, reason=reason, result=wanted)


def _argument(build: Builder, layouts: ChannelsLast, value: TensorValue, what: What) -> TensorArgument:
    value = build.where_eager_has_it(value)
    layout, wanted = value.layout(), channels_last_strides(value.shape)
    if layout is not None and value.buffer is not None and lies_alike(value.shape, layout.stride, wanted):
        return TensorArgument(value.buffer, replace(layout, stride=wanted))
    stored = build.materialise(value, Layout(value.shape, wanted, value.dtype), label="channels_last")
    assert stored.buffer is not None
    layouts.note(Conversion(stored.buffer, value.buffer or "", what, build.origin))
    layouts.moved.setdefault(stored.buffer, build.origin)
    return TensorArgument(stored.buffer, build.graph.buffers[stored.buffer])


def _is_images(value: Any) -> bool:
    return isinstance(value, TensorValue) and value.rank == 4


def _laid_out(result: Any) -> Any:
    """Eager's result of a convolution, channels-last if it is of images or filters."""
    if not isinstance(result, EagerTensor) or result.dim() != 4:
        return result
    return replace(result, strides=channels_last_strides(result.shape))
