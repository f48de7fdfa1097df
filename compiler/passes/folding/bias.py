"""Add a convolution's bias by a loop instead of the library's call.

    y = aten.convolution(x, w, bias)        ->      y = aten.convolution(x, w);  z = y + bias[:, None, None]

cuDNN's convolutions leave a bias to ATen, which adds it in a pass of its own over the result. As a loop it is computed
where the result is read. Both round twice: the convolution, then the sum. What takes a bias for nothing keeps it: the
calls of folding, and products of pixels (cuBLAS).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.devices import Device
from compiler.lowering.eager import EagerTensor, describe
from compiler.lowering.one_pixel import is_pixel_product
from compiler.options import Options
from compiler.passes.folding.writing import call_of, with_calls_rewritten

aten = torch.ops.aten

#: The name of this pass in the knob `disable`.
KNOB = "bias"


def with_bias_apart(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` whose convolutions have no bias, or `graph` itself where there is none to take out. On a CPU
    oneDNN adds it as it stores the result."""
    if device.kind == "cpu" or KNOB in options.disabled_rules:
        return graph, ()
    return with_calls_rewritten(graph, aten.convolution.default, _takes_apart, _take_apart), ()


def _takes_apart(convolution: Node) -> bool:
    _, weight, bias, stride, padding, _, is_transposed, _, groups = convolution.args
    if not isinstance(bias, Node) or not isinstance(weight, Node):
        return False
    result, of_bias = convolution.meta["val"], bias.meta["val"]
    if result.dtype != of_bias.dtype or not result.dtype.is_floating_point or result.device != of_bias.device:
        return False
    filters = describe(weight.meta["val"]).shape
    return len(filters) != 4 or not is_pixel_product(filters, result.dtype, stride, padding, is_transposed, groups)  # type: ignore[arg-type]


def _take_apart(convolution: Node) -> None:
    bias: Any = convolution.args[2]
    graph, result, of_bias = convolution.graph, convolution.meta["val"], describe(bias.meta["val"])
    convolution.update_arg(2, None)
    last, operand = convolution, bias
    space: tuple[int, ...] = ()
    for _ in result.shape[2:]:
        space = (*space, 1)
        value = EagerTensor((*of_bias.shape, *space), (*of_bias.strides, *space), 0, of_bias.dtype, of_bias.device)
        with graph.inserting_after(last):
            last = operand = call_of(convolution, graph, value, aten.unsqueeze.default, operand, -1)
    with graph.inserting_after(last):
        total = call_of(convolution, graph, result, aten.add.Tensor, convolution, operand, label="bias")
    convolution.replace_all_uses_with(total, delete_user_cb=lambda user: user is not total)
