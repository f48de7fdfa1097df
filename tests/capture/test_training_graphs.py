"""Forward and backward graphs are linked, and say what is saved for the backward pass and what it computes again."""

from __future__ import annotations

import pytest
import torch

from compiler.capture import CapturedGraph, reference_run
from compiler.capture.autograd.training import saved_for_backward
from tests.capture.programs import captured, captured_source

_GATED = """import torch

layer = torch.nn.Linear(16, 32)


@torch.compile
def gated(x):
    h = layer(x)
    return (h.tanh() * h.sigmoid()).exp().sum(), h


loss, h = gated(torch.randn(8, 16, requires_grad=True))
loss.backward()
"""

_NORMED = """
import torch
import torch.nn.functional as F


@torch.compile
def apart(x, y):
    return (1 - F.cosine_similarity(x, y)).mean()


x, y = torch.randn(2, 32, 64).unbind()
apart(x.requires_grad_(), y.requires_grad_()).backward()
"""

_CHECKPOINTED = """import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


@torch.compile
def dropped(x):
    return checkpoint(lambda v: F.dropout(v.exp(), 0.5), x, use_reentrant=False)


dropped(torch.ones(64, 8, requires_grad=True)).sum().backward()
"""

_HALVES = """import torch


@torch.compile
def gated(x, weight):
    left, right = x.split(8, 1)
    return (left @ weight).sin() * right


gated(torch.randn(4, 16), torch.randn(8, 8, requires_grad=True)).sum().backward()
"""

_MODULE = """import torch


class Scaled(torch.nn.Module):
    def forward(self, x):
        return (x * 2).sin()


torch.compile(Scaled())(torch.randn(4, requires_grad=True)).sum().backward()
"""


def both(source: str) -> tuple[CapturedGraph, CapturedGraph]:
    capture = captured_source(source)
    assert capture.error is None
    forward, backward = capture.graphs
    return forward, backward


def test_forward_and_backward_name_each_other() -> None:
    forward, backward = captured("08").graphs
    assert (forward.partner, backward.partner) == (backward.name, forward.name)
    assert forward.saved == [] and forward.recomputed == []
    (alone,) = captured("01").graphs
    assert alone.partner is None


def test_both_graphs_of_a_module_are_named_after_its_class() -> None:
    assert [graph.function for graph in both(_MODULE)] == ["Scaled", "Scaled"]


def test_what_is_saved_is_what_the_backward_graph_takes() -> None:
    forward, backward = captured("08").graphs
    taken = [node for node in backward.aten.graph.nodes if node.op == "placeholder"]
    assert [saved.input for saved in backward.saved] == [
        node.name for node in taken if not node.name.startswith("tangents")
    ]
    made = {node.name: node.meta["val"] for node in forward.aten.graph.nodes if "val" in node.meta}
    for saved in backward.saved:
        assert saved.shape == list(made[saved.node].shape)
        assert saved.bytes == made[saved.node].numel() * made[saved.node].dtype.itemsize
    kinds = {saved.node: saved.kind for saved in backward.saved}
    assert kinds["x"] == kinds["y"] == kinds["model_4_weight"] == "input" and kinds["addmm"] == "activation"
    mask = next(saved for saved in backward.saved if saved.dtype == "bool")
    assert mask.shape == [32, 128] and mask.bytes == 32 * 128 and mask.kind == "activation"


def test_cheap_operators_are_computed_again_and_not_saved() -> None:
    _forward, backward = both(_GATED)
    assert backward.recomputed == ["tanh", "sigmoid", "mul", "exp"]
    assert [(saved.node, saved.kind) for saved in backward.saved] == [
        ("weight", "input"), ("x", "input"), ("addmm", "output")
    ]  # fmt: skip


def test_a_part_of_an_input_that_is_saved_is_an_input() -> None:
    """Both halves are views of `x`, which the caller keeps alive."""
    _forward, backward = both(_HALVES)
    assert [(saved.kind, saved.shape) for saved in backward.saved] == [
        ("input", [4, 8]), ("activation", [4, 8]), ("input", [8, 4])
    ]  # fmt: skip


def test_what_is_divided_by_a_norm_is_computed_again_too() -> None:
    """The norm is a reduction of ours, and no call of a library behind which everything would have to be saved."""
    _forward, backward = both(_NORMED)
    assert {saved.kind for saved in backward.saved if saved.shape == [32, 64]} == {"input"}
    assert "linalg_vector_norm" not in backward.recomputed


def test_gradients_of_the_captured_graphs_are_eagers() -> None:
    """The backward graph, run on what the forward graph saves in float64, against autograd of the formula."""
    forward, backward = both(_GATED)
    assert forward.inputs is not None and backward.inputs is not None
    given = {node.name: value for node, value in zip(_placeholders(forward), forward.inputs, strict=True)}
    x, weight, bias = (given[name].double().requires_grad_() for name in ("x", "weight", "bias"))
    h = torch.nn.functional.linear(x, weight, bias)
    torch.autograd.backward((h.tanh() * h.sigmoid()).exp().sum())
    # The loss saves nothing but what is listed, so its outputs end in what the backward graph takes first.
    saved = reference_run(forward, forward.inputs)[-len(backward.saved) :]
    tangents = backward.inputs[len(backward.saved) :]
    gradients = reference_run(backward, [*saved, *tangents])
    by_shape = {tuple(gradient.shape): gradient for gradient in gradients if gradient is not None}
    for leaf in (x, weight, bias):
        torch.testing.assert_close(by_shape[tuple(leaf.shape)], leaf.grad, rtol=1e-10, atol=1e-10)


def test_a_checkpoint_saves_the_generators_state_and_draws_again() -> None:
    forward, backward = both(_CHECKPOINTED)
    (state,) = [saved for saved in backward.saved if saved.dtype == "uint8"]
    assert state.kind == "activation" and state.shape == list(torch.get_rng_state().shape)
    assert not any(saved.dtype == "bool" for saved in backward.saved)
    assert all("val" in node.meta for node in forward.aten.graph.nodes if node.op == "call_function")
    assert backward.runner.calls == 1


def test_graphs_that_are_no_pair_are_refused() -> None:
    forward, backward = (graph.aten for graph in captured("08").graphs)
    with pytest.raises(ValueError, match="more tensors"):
        saved_for_backward(backward, backward)
    assert saved_for_backward(forward, backward)


def _placeholders(graph: CapturedGraph) -> list[torch.fx.Node]:
    return [node for node in graph.aten.graph.nodes if node.op == "placeholder"]
