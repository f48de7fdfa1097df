"""The gradient that cuDNN's attention is differentiated from, in the layout of the attention's result.

    backward(gradient, q, k, v, result, ...)     ->     backward(gradient.permute(...).clone().permute(...), ...)

PyTorch keeps the plans that cuDNN made by the layouts of queries, keys, values and bias (MHAParams in ATen's
cudnn/MHA.cpp of torch 2.11), and not by that of the gradient: a plan that was made for one layout is run on another,
and gives wrong gradients without a word. Autograd's own gradients mostly have the result's layout, and AOTAutograd's
are contiguous where the result is returned as it is. So what has another layout is copied into the result's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from compiler.fx.fake_values import fake_mode_of

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
    turned = _call(before, aten.permute.default, gradient, outer_to_inner)
    copied = _call(before, aten.clone.default, turned, memory_format=torch.contiguous_format)
    return _call(before, aten.permute.default, copied, back)


def _call(before: Node, target: torch._ops.OpOverload, source: Node, *args: Any, **settings: Any) -> Node:
    with before.graph.inserting_before(before):
        node = before.graph.call_function(target, (source, *args), settings)
    node.meta = {key: value for key, value in before.meta.items() if key != "val"}
    with fake_mode_of([source.meta["val"]]):
        node.meta["val"] = target(source.meta["val"], *args, **settings)
    return node
