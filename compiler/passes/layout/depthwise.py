"""Replace a depthwise convolution by a loop over its windows, where that is faster than the library's call.

    y = aten.convolution(x, f, b, groups=channels)    ->    for n, c, h, w: y = sum over i, j of x[...] * f[c, 0, i, j]

Each result is a sum of few products of one channel, which matrix units are no help for, so that memory should limit it:
the library's kernels take many times as long. The loop computes what follows before anything is stored. The call is
only marked here: its layout is chosen with the others', and lowering writes the loop. Where gradients are to follow,
the call stays: theirs expects to find it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.fx.notes import IS_DEPTHWISE_LOOP, lines_noted
from compiler.options import Options
from compiler.passes.layout.choice import LayoutChoice
from compiler.passes.layout.passed import has_gradients
from compiler.passes.writing import calls_of, copied
from compiler.schedule.windows import MOST_IN_A_LANE

aten = torch.ops.aten

#: The name of this pass in the knob `disable`.
KNOB = "depthwise"
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def with_depthwise_loops(
    graph: GraphModule, device: Device, options: Options
) -> tuple[GraphModule, tuple[LayoutChoice, ...]]:
    """A copy of `graph` in which depthwise convolutions are marked, or `graph` itself where there is none, and a record
    of each that is one of images."""
    if device.kind == "cpu" or KNOB in options.disabled_rules or has_gradients(graph):
        return graph, ()
    found = {node.name for node in calls_of(graph, aten.convolution.default) if _is_loop(node)}
    if not found:
        return graph, ()
    copy = copied(graph)
    meant = [node for node in calls_of(copy, aten.convolution.default) if node.name in found]
    for node in meant:
        node.meta[IS_DEPTHWISE_LOOP] = True
    images = [node for node in meant if len(node.meta["val"].shape) == 4]
    return copy, tuple(LayoutChoice("layout.depthwise", nodes=(node.name,), lines=lines_noted(node)) for node in images)


def _is_loop(convolution: Node) -> bool:
    """Whether it has a filter for each channel alone, whose elements are few enough for a lane to go over."""
    image, weight, bias, *_, is_transposed, _, groups = convolution.args
    images, filters, result = (node.meta["val"] for node in (image, weight, convolution))  # type: ignore[union-attr]
    window: list[Any] = list(filters.shape[2:])
    if not all(isinstance(size, int) for size in (*filters.shape, images.shape[1])) or is_transposed:
        return False
    if groups == 1 or groups != images.shape[1] or not 1 < prod(window) <= MOST_IN_A_LANE:
        return False
    if any(isinstance(size, int) and size == 0 for size in result.shape):
        return False
    values = [node.meta["val"] for node in (image, weight, bias, convolution) if isinstance(node, Node)]
    dtypes, devices = {value.dtype for value in values}, {value.device for value in values}
    return len(dtypes) == len(devices) == 1 and dtypes.issubset(DTYPES)
