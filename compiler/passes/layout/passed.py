"""What passes from a forward graph to the backward graph that AOTAutograd split from the same joint graph.

    joint      y = convolution(x, w) ... gx, gw = convolution_backward(gy, x, w)
    forward    returns the user's results, then what is saved: x, y, ...
    backward   takes what was saved, then the gradients of the results

Both graphs are compiled apart, the forward one first. What it decides of tensors that only the backward graph sees,
their strides, the backward graph must know. Both graph modules hold the same `Passed` in their `meta`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.fx.notes import BACKWARD, FORWARD
from compiler.passes.layout.choice import LayoutChoice

aten = torch.ops.aten


@dataclass(frozen=True)
class Gradients:
    """A call of `convolution_backward` by its node's name, and whether it computes the gradient of the image."""

    name: str
    of_image: bool


@dataclass
class Passed:
    """Places are those among a graph's inputs and outputs, from 0."""

    #: How many outputs of the forward graph the caller gets; the others are saved.
    own_outputs: int
    #: From an input of the backward graph to the output of the forward graph that it is.
    saved: dict[int, int]
    #: From a convolution of the forward graph to the call for its gradients in the backward graph.
    gradients: dict[str, Gradients]
    #: Written when the forward graph is lowered: strides of those outputs that do not lie as eager's, ...
    strides: dict[int, tuple[int, ...]] = field(default_factory=dict)
    #: ... and what was decided of its convolutions.
    choices: tuple[LayoutChoice, ...] = ()

    def __deepcopy__(self, memo: Any) -> Passed:
        """AOTAutograd copies the backward graph before it is compiled, and the copy takes what the original would."""
        return self

    @property
    def strides_taken(self) -> dict[int, tuple[int, ...]]:
        """Strides of those inputs of the backward graph that do not lie as eager's."""
        return {position: self.strides[output] for position, output in self.saved.items() if output in self.strides}


def note_passed(forward: GraphModule, backward: GraphModule, own_outputs: int) -> None:
    """Leave in both graphs what passes between them. AOTAutograd names what is saved alike in both, and numbers each
    call of the joint graph as the call that it is the gradient of."""
    results = list(forward.graph.output_node().args[0])  # type: ignore[arg-type]
    positions = {result.name: position for position, result in enumerate(results) if isinstance(result, Node)}
    taken = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    saved = {position: positions[name] for position, name in enumerate(taken) if positions.get(name, -1) >= own_outputs}
    numbered = _by_number(backward, aten.convolution_backward.default)
    gradients = {
        node.name: Gradients(numbered[number].name, bool(numbered[number].args[10][0]))  # type: ignore[index]
        for number, node in _by_number(forward, aten.convolution.default).items()
        if number in numbered
    }
    passed = Passed(own_outputs, saved, gradients)
    forward.meta[FORWARD] = backward.meta[BACKWARD] = passed


def has_gradients(graph: GraphModule) -> bool:
    """Whether it is the forward or the backward graph of a training step."""
    return FORWARD in graph.meta or BACKWARD in graph.meta


def saved_outputs(graph: GraphModule) -> frozenset[int]:
    """Positions of the outputs of a forward graph that only its backward graph gets; none of any other graph."""
    passed: Passed | None = graph.meta.get(FORWARD)
    if passed is None:
        return frozenset()
    return frozenset(range(passed.own_outputs, len(graph.graph.output_node().args[0])))  # type: ignore[arg-type]


def _by_number(graph: GraphModule, target: Any) -> dict[int, Node]:
    nodes = graph.graph.find_nodes(op="call_function", target=target)
    return {node.meta["seq_nr"]: node for node in nodes if node.meta.get("seq_nr", -1) >= 0}
