"""Convolutions that work channels-last, and what stands in the place of some: products and loops.

Channels-last, pixels lie one after another, each with its channels side by side. Filters of one pixel make a matrix
product of that. As a product it can take what follows it, a normalisation, a sum and an activation, before anything is
stored, which no call of a convolution can in bfloat16; and its call takes the host less time.

    y[n, k, h, w] = sum over c of x[n, c, h, w] * f[k, c]
    y (pixels, k)  =  x (pixels, c)  times  f (c, k)

Of few channels, a product over the windows of the image. The library's half-precision kernels take eight channels at a
time: they copy an image of three channels into one of eight, and multiply by its zeros. Here the windows are a loop
that reads the image as it lies, which the kernel of the product can compute as it goes. Windows, or their rows, are
filled up to whole vectors with zeros.

    y[n, k, h, w] = sum over c, i, j of x[n, c, s*h + i - p, t*w + j - q] * f[k, c, i, j]
    windows (n, h, w), each with its elements (c, i, j) side by side, times the filter as a matrix

With a filter for each channel, a loop, in either layout. There is nothing for matrix units in it, and the library's
kernels are far from what memory gives. In a loop what follows is computed before anything is stored.

    y[n, c, h, w] = sum over i, j of x[n, c // m, s*h + i - p, t*w + j - q] * f[c, 0, i, j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch

from compiler.fx.notes import IS_DEPTHWISE_LOOP
from compiler.ir.index import ZERO, Index
from compiler.ir.nodes import Layout, TensorArgument
from compiler.ir.ops import ops
from compiler.ir.positions import unflatten
from compiler.lowering.builder import Builder
from compiler.lowering.channels_last import ChannelsLast, Conversion, What, channels_last_strides, lies_alike
from compiler.lowering.eager import EagerTensor
from compiler.lowering.indexing import all_of, below, inside_of
from compiler.lowering.values import Position, TensorValue, fixed, of_buffer

aten = torch.ops.aten

#: Elements of a half type that the matrix units' loads take at once: rows of other lengths are loaded piecemeal.
VECTOR = 8
#: The library's half-precision kernels take channels by as many.
FEW_CHANNELS = 8
#: A stride of more elements leaves gaps between what lanes read that go along windows.
FAR_APART = 2
OF_PIXELS = (
    "A convolution with filters of one pixel is a matrix product over the channels, and so a library call: cuBLAS is "
    "tuned for every size of it."
)
OF_WINDOWS = (
    "A convolution of few channels is a matrix product over the windows of the image, and so a library call: cuBLAS is "
    "tuned for every size of it."
)
#: What the first arguments of a call are that can work channels-last.
_OF_GRADIENTS: tuple[What, ...] = ("gradient", "image", "filter")


def is_pixel_product(
    filter_shape: Sequence[Any], dtype: torch.dtype, stride: Sequence[int], padding: Sequence[int],
    is_transposed: bool, groups: int,
) -> bool:  # fmt: skip
    """Whether a convolution of two dimensions becomes a product over channels where its tensors are channels-last."""
    if not all(isinstance(size, int) for size in filter_shape):
        return False
    filters, channels, *window = filter_shape
    is_plain = not is_transposed and groups == 1 and set(window) == set(stride) == {1} and set(padding) == {0}
    is_half = dtype in (torch.float16, torch.bfloat16)
    return is_plain and is_half and filters % VECTOR == 0 and channels % VECTOR == 0


def is_window_product(
    filter_shape: Sequence[Any], dtype: torch.dtype, dilation: Sequence[int], is_transposed: bool, groups: int
) -> bool:
    """Whether a convolution of two dimensions becomes a product over windows where it is channels-last."""
    filters, channels, *window = filter_shape
    is_plain = not is_transposed and groups == 1 and set(dilation) == {1}
    is_half = dtype in (torch.float16, torch.bfloat16)
    return is_plain and is_half and filters % VECTOR == 0 and channels < FEW_CHANNELS and prod(window) > 1


def convolution(build: Builder, target: Any, args: Sequence[Any], reason: str) -> Any:
    """The current node, which is channels-last or a loop, or both."""
    assert build.node is not None
    layouts, is_loop = build.channels_last, IS_DEPTHWISE_LOOP in build.node.meta
    if layouts is None or build.node not in layouts.convolutions:
        return _depthwise(build, build.result_layout(build.eager.shape, build.eager.dtype), *args)
    if is_loop:
        taken = _argument(build, layouts, args[0], "image")
        image = of_buffer(taken.buffer, taken.layout)
        result = build.eager
        layout = Layout(result.shape, channels_last_strides(result.shape), result.dtype)
        value = _depthwise(build, layout, image, *args[1:])
    elif build.node in layouts.windows:
        image, weight, bias, stride, padding, *_ = args
        value = _window_product(build, image, weight, bias, stride, padding)
    else:
        return _call(build, layouts, target, args, reason)
    assert value.buffer is not None
    sources = [layouts.moved[image.buffer]] if image.buffer in layouts.moved else []
    layouts.moved[value.buffer] = layouts.join([build.origin, *sources])
    return value


# --- calls


def _call(build: Builder, layouts: ChannelsLast, target: Any, args: Sequence[Any], reason: str) -> Any:
    """The call with image and filter channels-last, and so its results of images, which is remembered."""
    kinds = _OF_GRADIENTS if target is aten.convolution_backward.default else _OF_GRADIENTS[1:]
    kinds += tuple("argument" for _ in args[len(kinds) :])
    arguments = tuple(
        _argument(build, layouts, value, what) if what != "argument" or _is_images(value) else value
        for value, what in zip(args, kinds, strict=True)
    )
    value, result = None, build.eager
    if target is aten.convolution.default:
        value = _pixel_product(build, arguments)
    if value is None:
        wanted = [_laid_out(one) for one in result] if isinstance(result, list | tuple) else _laid_out(result)
        value = build.extern(target, arguments, {}, is_fallback=False, reason=reason, result=wanted)
    tensors = [argument for argument in arguments if isinstance(argument, TensorArgument)]
    sources = [layouts.moved[tensor.buffer] for tensor in tensors if tensor.buffer in layouts.moved]
    region = layouts.join([build.origin, *sources])
    for made in value if isinstance(value, tuple) else (value,):
        if _is_images(made):
            layouts.moved[made.buffer] = region
    return value


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


# --- products


def _pixel_product(build: Builder, arguments: Sequence[Any]) -> TensorValue | None:
    image, weight, bias, stride, padding, _, is_transposed, _, groups = arguments
    filters, channels, *_ = weight.layout.shape
    dtype = build.eager.dtype
    if not is_pixel_product(weight.layout.shape, dtype, stride, padding, is_transposed, groups):
        return None
    batch, _, *sides = build.eager.shape
    left = Layout((batch * prod(sides), channels), (channels, 1), dtype, image.layout.offset)
    right = Layout((channels, filters), (1, channels), dtype, weight.layout.offset)
    return _product(build, TensorArgument(image.buffer, left), TensorArgument(weight.buffer, right), bias, OF_PIXELS)


def _window_product(
    build: Builder, image: TensorValue, weight: TensorValue, bias: TensorValue | None, stride: Sequence[int],
    padding: Sequence[int],
) -> TensorValue:  # fmt: skip
    result: EagerTensor = build.eager
    batch, filters, *counts = result.shape
    *front, wide = weight.shape[1:]
    window = (*front, _row(fixed(wide), stride[-1]))
    rows, taken = batch * prod(counts), prod(window)
    length = -(-taken // VECTOR) * VECTOR

    def is_taken(column: Index) -> list[Any]:
        if window[-1] != wide:
            return [below(unflatten(column, window)[-1], wide)]
        return [] if length == taken else [below(column, taken)]

    def element(position: Position) -> Any:
        number, *block = unflatten(position[0], (batch, *counts))
        channel, *inner = unflatten(position[1], window)
        parts = zip(block, inner, stride, padding, strict=True)
        source = [count * step + k - before for count, k, step, before in parts]
        inside = inside_of(source, image.shape[2:])
        mask = all_of([*([] if inside is None else [inside]), *is_taken(position[1])])
        return image.load((number, channel, *source), mask)

    def filter_element(position: Position) -> Any:
        return weight.load((position[0], *unflatten(position[1], window)), all_of(is_taken(position[1])))

    def stored(shape: tuple[Any, ...], element: Any, label: str) -> str:
        layout = Layout.contiguous(shape, result.dtype)
        made = build.pointwise(shape, result.dtype, element, label=label, layout=layout, materialise=True)
        assert made.buffer is not None
        return made.buffer

    left = TensorArgument(stored((rows, length), element, "windows"), Layout.contiguous((rows, length), result.dtype))
    transposed = Layout((length, filters), (1, length), result.dtype)
    right = TensorArgument(stored((filters, length), filter_element, "filter"), transposed)
    return _product(build, left, right, bias, OF_WINDOWS)


def _row(wide: int, stride: int) -> int:
    """How many numbers a row of a window takes. A GPU's lanes go along windows that are close together, and along rows
    of whole vectors where windows are far apart. On an H200, batches of 32, rows of 7 and of 8: 105 and 134 us with a
    stride of 2 (ResNet-50), 250 and 140 us with a stride of 4 (SegFormer)."""
    whole = -(-wide // VECTOR) * VECTOR
    return whole if stride > FAR_APART and 2 * whole <= 3 * wide else wide


def _product(build: Builder, left: TensorArgument, right: TensorArgument, bias: Any, reason: str) -> TensorValue:
    """The current node's images, whose memory is the matrix that the product gives."""
    result: EagerTensor = build.eager
    shape = (left.layout.shape[0], right.layout.shape[1])
    target, start = (aten.mm.default, ()) if bias is None else (aten.addmm.default, (bias,))
    matrix: TensorValue = build.extern(
        target, (*start, left, right), {}, is_fallback=False, reason=reason,
        result=EagerTensor(shape, (shape[1], 1), 0, result.dtype, result.device),
    )  # fmt: skip
    assert matrix.buffer is not None
    return of_buffer(matrix.buffer, Layout(result.shape, channels_last_strides(result.shape), result.dtype))


# --- loops


def _depthwise(
    build: Builder, layout: Layout, image: TensorValue, weight: TensorValue, bias: TensorValue | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], *_: Any,
) -> TensorValue:  # fmt: skip
    window = weight.shape[2:]
    multiplier = weight.shape[0] // image.shape[1]
    weight = _side_by_side(build, weight, layout)

    def element(position: Position, reduced: Position) -> Any:
        number, channel, *block = position
        parts = zip(block, reduced, stride, padding, dilation, strict=True)
        source = [count * step + k * apart - before for count, k, step, before, apart in parts]
        taken = image.load((number, channel // multiplier, *source), inside_of(source, image.shape[2:]))
        total = ops.reduce("sum", taken * weight.load((channel, ZERO, *reduced)))
        return total if bias is None else total + bias.load((channel,))

    return build.reduction(layout.shape, layout.dtype, window, element, layout=layout)


def _side_by_side(build: Builder, weight: TensorValue, result: Layout) -> TensorValue:
    """The filters; those of all channels lie side by side, for each element of the window, where results do."""
    window = weight.shape[2:]
    if result.stride[1] != 1 or prod(window) == 1:
        return weight
    count = weight.shape[0]
    strides = tuple(count * prod(window[axis + 1 :]) for axis in range(len(window)))
    layout = Layout(weight.shape, (1, count * prod(window), *strides), weight.dtype)
    return build.materialise(weight, layout, label="filters")
