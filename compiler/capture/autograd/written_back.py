"""Which outputs of an inference graph AOTAutograd copies into an input after each call, as notes in the `meta` of the
graph, and of the nodes that could as well change a part of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node

from compiler.capture.torch_internals import changed_inputs
from compiler.fx.notes import GIVEN_AS_VIEWS, UPDATES_INPUT, WRITTEN_BACK

if TYPE_CHECKING:
    from compiler.ir.nodes import LoopGraph

aten = torch.ops.aten
_OF_SLICES = (aten.slice_scatter.default, aten.select_scatter.default)
_VIEWS = (aten.slice.Tensor, aten.select.int)


def note_written_back(graph: GraphModule) -> None:
    """Leave the note; to be called while AOTAutograd has the graph compiled."""
    graph.meta[WRITTEN_BACK], graph.meta[GIVEN_AS_VIEWS] = changed_inputs()


def written_back(graph: GraphModule, loops: LoopGraph) -> dict[str, str]:
    """The buffers of those outputs of the lowered graph, each with the input's. One that is an input itself, a part of
    a buffer, or an output twice is none of them."""
    views = graph.meta.get(GIVEN_AS_VIEWS, frozenset())
    inputs = tuple(graph.graph.find_nodes(op="placeholder"))
    given = [output.buffer for position, output in enumerate(loops.outputs) if position not in views]
    found: dict[str, str] = {}
    for position, target in graph.meta.get(WRITTEN_BACK, {}).items():
        output, name = loops.outputs[position], loops.inputs[target]
        if name is None or output.buffer is None or output.layout != loops.buffers[output.buffer]:
            continue
        is_alone = given.count(output.buffer) == 1 and output.buffer not in loops.inputs and name not in given
        if is_alone and not _is_negated(inputs[target]):
            found[output.buffer] = name
    return found


def mark_updates(graph: GraphModule) -> None:
    """Note at each node that changes a slice of an input and is written back to it that nothing else reads the input's
    values, so that the slice alone may be written."""
    inputs = tuple(graph.graph.find_nodes(op="placeholder"))
    outputs: Sequence[Any] = graph.graph.output_node().args[0]  # type: ignore[assignment]
    for position, target in graph.meta.get(WRITTEN_BACK, {}).items():
        given, node = inputs[target], outputs[position]
        users = list(given.users)
        if not isinstance(node, Node) or node.target not in _OF_SLICES or node.args[0] is not given:
            continue
        is_unread = all(user is node or _takes_shape(user) for user in users) and node.args[1] is not given
        if is_unread and not _is_negated(given):
            node.meta[UPDATES_INPUT] = True


def _is_negated(given: Any) -> bool:
    """Whether an input has other signs in memory than its caller reads, as `z.conj().imag` has."""
    value = given.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_neg()


def _takes_shape(view: Node) -> bool:
    """Whether a view of an input is only what something is copied to, which takes its shape."""
    return view.target in _VIEWS and all(
        user.target is aten.copy.default and user.args[1] is not view for user in view.users
    )
