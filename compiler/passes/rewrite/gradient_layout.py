"""The gradient that cuDNN's attention is differentiated from, in the layout of the attention's result.

    backward(gradient, q, k, v, result, ...)     ->     backward(gradient.permute(...).clone().permute(...), ...)

PyTorch keeps the plans that cuDNN made by the layouts of queries, keys, values and bias (MHAParams in ATen's
cudnn/MHA.cpp of torch 2.11), and not by that of the gradient: a plan that was made for one layout is run on another,
and gives wrong gradients without a word. Autograd's own gradients mostly have the result's layout, and AOTAutograd's
are contiguous where the result is returned as it is. So what has another layout is copied into the result's.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from compiler.passes.rewrite.joint import call_beside

aten = torch.ops.aten

_BACKWARD = aten._scaled_dot_product_cudnn_attention_backward.default
_GRADIENT, _RESULT = 0, 4


def lay_gradients_out(joint: GraphModule) -> None:
    """Change, in place, every such call of `joint` whose gradient has other strides than the result."""
    for node in joint.graph.find_nodes(op="call_function", target=_BACKWARD):
        gradient, result = node.args[_GRADIENT], node.args[_RESULT]
        if not _is_laid_out_alike(gradient.meta["val"], result.meta["val"]):
            node.update_arg(_GRADIENT, _copied_like(gradient, result, node))


def _is_laid_out_alike(a: Tensor, b: Tensor) -> bool:
    return all(x == y for size, x, y in zip(a.shape, a.stride(), b.stride(), strict=True) if size != 1)


def _copied_like(gradient: Node, result: Node, before: Node) -> Node:
    strides = result.meta["val"].stride()
    outer_to_inner = sorted(range(len(strides)), key=lambda dim: strides[dim], reverse=True)
    back = sorted(range(len(strides)), key=outer_to_inner.__getitem__)
    with before.graph.inserting_before(before):
        turned = call_beside(before, aten.permute.default, gradient, outer_to_inner)
        copied = call_beside(before, aten.clone.default, turned, memory_format=torch.contiguous_format)
        return call_beside(before, aten.permute.default, copied, back)
