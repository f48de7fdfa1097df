"""On which device a graph runs, and what it may not do with the others.

A graph runs on one GPU, or on the CPU. Beside a GPU it may have tensors on the CPU: kernels get copies of those, and
what eager computes from them on the CPU is a library call there. A kernel is launched with plain addresses, and would
read another device's memory at its peril; so that is made sure of here, before anything is generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from compiler.ir.nodes import LoopGraph, LoopNode
from compiler.lowering.eager import eager_tensors
from compiler.lowering.unsupported import UnsupportedGraph, unsupported_at

_ONE_DEVICE_INSTEAD = (
    "Compile what runs on each device as a function of its own, and move tensors between the devices outside of the "
    "compiled functions."
)
_TYPES = ("cpu", "cuda")


def device_of_graph(eager: Mapping[torch.fx.Node, Any]) -> torch.device:
    """The device that a graph's tensors lie on, other than the CPU, if there is one; else the CPU.

    `eager` tells what eager's value of each node looks like. Raises UnsupportedGraph where there are several, or one
    that is no GPU."""
    found = torch.device("cpu")
    for node, value in eager.items():
        for device in (tensor.device for tensor in eager_tensors(value)):
            if device.type not in _TYPES:
                message = f"the graph has a tensor on the device `{device}`, and kernels are made for CPUs and GPUs"
                raise unsupported_at(node, message, _ONE_DEVICE_INSTEAD)
            if found.type == "cpu":
                found = device
            elif device.type != "cpu" and device != found:
                message = f"the graph works on two GPUs, {found} and {device}, and ours on one"
                raise unsupported_at(node, message, _ONE_DEVICE_INSTEAD)
    return found


def refuse_foreign_reads(graph: LoopGraph) -> None:
    """Raises UnsupportedGraph where a loop touches memory of another device than the graph's."""
    for node in graph.nodes:
        if not isinstance(node, LoopNode):
            continue
        foreign = (node.read_buffers | {node.name}) & graph.elsewhere
        if foreign:
            line = node.lines[-1] if node.lines else None
            message = f"a kernel would have to read `{min(foreign)}`, which lies on another device"
            raise UnsupportedGraph(message, line, _ONE_DEVICE_INSTEAD)
