"""Replace a convolution of windows that do not overlap by a matrix product over patches of the image.

    y[n, k, h, w] = sum over c, i, j of x[n, c, p*h + i, q*w + j] * f[k, c, i, j]

    patches (n, h, w), each with the elements (c, i, j) of its window side by side, times the filter as a matrix

The copy into patches is a loop: it joins what computes the image, where that is a loop. Windows of one pixel need none
where eager has the image channels-last; larger ones there stay with the library, for the filter would have to be turned
(SegFormer's of 4 x 4 pixels, batch 32 on an H200: 32 us instead of 18). As a product it takes what follows before
anything is stored; and the library's convolutions of few channels, which fill them up to eight, take many times as long
(a ViT's first, batch 32 on an H200: 251 us).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.fx.notes import lines_noted
from compiler.lowering.channels_last import channels_last_strides, lies_alike
from compiler.lowering.convolutions import VECTOR
from compiler.options import Options
from compiler.passes.layout.choice import LayoutChoice
from compiler.passes.layout.passed import has_gradients
from compiler.passes.price import Convolution, copy_us, price_of
from compiler.passes.writing import call_like, call_of, calls_of, copied

aten = torch.ops.aten

#: The name of this pass in the knob `disable`.
KNOB = "patches"
#: What a loop computes, so that patches may be written in its place: everything but calls of the library and inputs.
CALLS = (aten.convolution.default, aten.mm.default, aten.addmm.default, aten.bmm.default)


def with_products(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[LayoutChoice, ...]]:
    """A copy of `graph` in which convolutions are products where the device model says that it pays, or `graph` itself
    where none is."""
    if device.kind == "cpu" or KNOB in options.disabled_rules or has_gradients(graph):
        return graph, ()
    records = {node.name: _weighed(node, device) for node in calls_of(graph, aten.convolution.default)}
    found = {name: record for name, record in records.items() if record is not None}
    if not found:
        return graph, ()
    copy = copied(graph)
    for node in calls_of(copy, aten.convolution.default):
        if node.name in found:
            _write_product(node)
    return copy, tuple(found.values())


def _weighed(convolution: Node, device: Device) -> LayoutChoice | None:
    """What the product is expected to take, where there is one and it takes less."""
    if not _is_product(convolution):
        return None
    image, weight = (argument.meta["val"] for argument in convolution.args[:2])  # type: ignore[union-attr]
    result = convolution.meta["val"]
    (batch, _, *pixels), (filters, *window) = result.shape, weight.shape
    taken = Convolution(tuple(image.shape), tuple(weight.shape), tuple(result.shape), 1, image.dtype)
    length = prod(window)
    product = Convolution((batch, length, *pixels), (filters, length, 1, 1), tuple(result.shape), 1, image.dtype)
    prices = price_of(taken, device), price_of(product, device)
    if prices[0] is None or prices[1] is None:
        return None
    copy_us = _copy_us(convolution.args[0], device) if _has_window(weight) else 0.0  # type: ignore[arg-type]
    kept_us = min(prices[0].channels_last, prices[0].contiguous)
    product_us = prices[1].channels_last + copy_us
    if _has_window(weight) and kept_us <= product_us:
        return None
    numbers = {"kept_us": kept_us, "product_us": product_us, "copy_us": copy_us}
    names, lines = (convolution.name,), lines_noted(convolution)
    return LayoutChoice("layout.patches", numbers, names, lines)


def _is_product(convolution: Node) -> bool:
    image, weight, bias, stride, padding, dilation, is_transposed, _, groups = convolution.args
    images, filters, result = (node.meta["val"] for node in (image, weight, convolution))  # type: ignore[union-attr]
    sizes = (*images.shape, *filters.shape, *result.shape, *images.stride(), *result.stride())
    if len(result.shape) != 4 or not all(isinstance(size, int) for size in sizes) or 0 in sizes:
        return False
    window = list(filters.shape[2:])
    is_plain = not is_transposed and groups == 1 and stride == window and not any(padding) and set(dilation) == {1}  # type: ignore[arg-type]
    values = [node.meta["val"] for node in (image, weight, bias, convolution) if isinstance(node, Node)]
    dtypes, devices = {value.dtype for value in values}, {value.device for value in values}
    if not is_plain or len(dtypes) > 1 or dtypes.isdisjoint((torch.float16, torch.bfloat16)) or len(devices) > 1:
        return False
    if filters.shape[0] % VECTOR or prod(filters.shape[1:]) % VECTOR:
        return False
    if _has_window(filters):
        return not _is_channels_last(images)
    return _is_channels_last(images) and _is_channels_last(result)


def _has_window(filters: Any) -> bool:
    return any(size > 1 for size in filters.shape[2:])


def _is_channels_last(value: Any) -> bool:
    return lies_alike(value.shape, value.stride(), channels_last_strides(value.shape))


def _copy_us(image: Node, device: Device) -> float:
    """Microseconds of the copy into patches: nothing where it is written instead of the image, by its loop."""
    if image.op == "call_function" and image.target not in CALLS and len(image.users) == 1:
        return 0.0
    value = image.meta["val"]
    return copy_us(2 * value.numel() * value.dtype.itemsize, device)


def _write_product(convolution: Node) -> None:
    """The product, in the place of a convolution."""
    graph = convolution.graph
    image, weight, bias, *_ = convolution.args
    result = convolution.meta["val"]
    batch, filters, *pixels = result.shape
    call = partial(call_like, convolution)
    with graph.inserting_before(convolution):
        left, right = _matrices(call, image, weight, pixels)
        factors = (left, right) if bias is None else (bias, left, right)
        product = call(aten.mm.default if bias is None else aten.addmm.default, *factors, label="product")
        images = call(aten.view.default, product, [batch, *pixels, filters])
        if _is_channels_last(result):
            value = call_of(convolution, result, aten.permute.default, images, [0, 3, 1, 2])
        else:
            permuted = call(aten.permute.default, images, [0, 3, 1, 2])
            value = call_of(convolution, result, aten.clone.default, permuted)
    convolution.replace_all_uses_with(value)
    graph.erase_node(convolution)


def _matrices(call: Callable[..., Node], image: Any, weight: Any, pixels: Sequence[int]) -> tuple[Node, Node]:
    """The patches, one a row, and the filters, one a column."""
    (batch, *_), (filters, channels, *window) = image.meta["val"].shape, weight.meta["val"].shape
    length = channels * prod(window)
    (height, width), (high, wide) = pixels, window
    used = image
    for dim, size in ((2, height * high), (3, width * wide)):
        if image.meta["val"].shape[dim] != size:
            used = call(aten.slice.Tensor, used, dim, 0, size)
    split = call(aten.view.default, used, [batch, channels, height, high, width, wide])
    patches = call(aten.permute.default, split, [0, 2, 4, 1, 3, 5])
    rows = call(aten.reshape.default, patches, [batch * height * width, length])
    columns = call(aten.reshape.default, weight, [filters, length])
    return rows, call(aten.permute.default, columns, [1, 0])
