"""One layout for a convolution and its gradients, though forward and backward graph are lowered apart.

    forward    y = convolution(x, w)                      decides, with what its gradients take in the price
    saved      x, y                                       lie as they are computed: no copy into eager's strides
    backward   gx, gw = convolution_backward(gy, x, w)    takes them so, and works in the same layout

The gradients that the caller gets have eager's strides, as all that a graph returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.ir.nodes import LoopGraph
from compiler.passes.layout.choice import MOVED, LayoutChoice
from compiler.passes.layout.passed import Passed
from compiler.passes.price import Convolution, Price, price_of_gradients


def price_of_backward(convolution: Convolution, name: str, passed: Passed | None, device: Device) -> Price:
    """What the gradients of the convolution of that name take, nothing where none are computed."""
    gradients = None if passed is None else passed.gradients.get(name)
    price = None if gradients is None else price_of_gradients(convolution, device, gradients.of_image)
    return price or Price(0.0, 0.0)


def convolution_of(gradients: Node) -> Convolution:
    """The convolution whose gradients a call of `aten.convolution_backward` computes."""
    values: tuple[Any, ...] = torch.fx.node.map_arg(gradients.args, lambda argument: argument.meta["val"])
    result, image, weight, *_ = values
    return Convolution(
        tuple(image.shape), tuple(weight.shape), tuple(result.shape), groups=values[9], dtype=image.dtype,
        is_transposed=values[7],
    )  # fmt: skip


def strides_of_saved(graph: GraphModule, loops: LoopGraph, own_outputs: int) -> dict[int, tuple[int, ...]]:
    """Strides of the saved tensors that do not lie as eager's, by their places among the outputs."""
    results: Any = graph.graph.output_node().args[0]
    return {position: strides for position, strides in _strides(results, loops) if position >= own_outputs}


def _strides(results: Sequence[Node], loops: LoopGraph) -> Iterator[tuple[int, tuple[int, ...]]]:
    for position, (result, output) in enumerate(zip(results, loops.outputs, strict=True)):
        if output.layout is not None and all(isinstance(step, int) for step in output.layout.stride):
            strides: tuple[int, ...] = output.layout.stride  # type: ignore[assignment]
            if strides != tuple(result.meta["val"].stride()):
                yield position, strides


def moved_by_forward(passed: Passed) -> set[str]:
    """The convolutions of the forward graph that are channels-last and have gradients."""
    return {name for choice in passed.choices if choice.verdict == MOVED for name in choice.nodes} & {*passed.gradients}


def kept_by_forward(passed: Passed) -> tuple[LayoutChoice, ...]:
    """The forward graph's records of what stays as it is, about the gradients instead."""
    kept = [choice for choice in passed.choices if choice.verdict != MOVED]
    named = [
        (choice, tuple(passed.gradients[name].name for name in choice.nodes if name in passed.gradients))
        for choice in kept
    ]
    return tuple(replace(choice, nodes=names, buffers=(), conversions=()) for choice, names in named if names)
