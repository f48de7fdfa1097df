"""cuDNN's attention is differentiated from a gradient that has the layout of its result."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule

import compiler.backend  # noqa: F401  (it imports the passes of joint graphs, in their order)
from compiler.passes.rewrite.joint import lay_gradients_out

BACKWARD = torch.ops.aten._scaled_dot_product_cudnn_attention_backward.default
SHAPE = (2, 3, 5, 8)


def joint_of(gradient_strides: tuple[int, ...], result_strides: tuple[int, ...]) -> GraphModule:
    """A graph of the call alone, which is not run: that takes a GPU."""
    graph = Graph()
    names = ("gradient", "query", "key", "value", "result", "logsumexp", "seed", "offset", "bias", "q_ends", "k_ends")
    nodes = [graph.placeholder(name) for name in names]
    with FakeTensorMode():
        for node in nodes:
            strides = gradient_strides if node.name == "gradient" else result_strides
            node.meta["val"] = torch.empty_strided(SHAPE, strides)
    call = graph.call_function(BACKWARD, (*nodes, 5, 5, 0.0, False))
    call.meta["val"] = tuple(node.meta["val"] for node in nodes[1:4])
    graph.output(call)
    return GraphModule(torch.nn.Module(), graph)


CONTIGUOUS, HEADS_SIDE_BY_SIDE = (120, 40, 8, 1), (120, 8, 24, 1)


def test_a_gradient_in_another_layout_is_copied() -> None:
    for gradient, result in ((CONTIGUOUS, HEADS_SIDE_BY_SIDE), (HEADS_SIDE_BY_SIDE, CONTIGUOUS)):
        joint = joint_of(gradient, result)
        lay_gradients_out(joint)
        joint.graph.lint()
        (call,) = joint.graph.find_nodes(op="call_function", target=BACKWARD)
        assert call.args[0].meta["val"].stride() == result
        (first,) = joint.graph.find_nodes(op="placeholder")[:1]
        steps = [node for node in joint.graph.nodes if node.op == "call_function" and node.target is not BACKWARD]
        values = {first: torch.randn(SHAPE)}
        for node in steps:
            values[node] = node.target(values[node.args[0]], *node.args[1:], **node.kwargs)
        assert torch.equal(values[call.args[0]], values[first])


def test_one_in_the_same_layout_is_not() -> None:
    joint = joint_of(HEADS_SIDE_BY_SIDE, HEADS_SIDE_BY_SIDE)
    before = len(joint.graph.nodes)
    lay_gradients_out(joint)
    assert len(joint.graph.nodes) == before
