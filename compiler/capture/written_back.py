"""Which outputs of an inference graph AOTAutograd copies into an input after each call, as a note in the graph's
`meta`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.fx import GraphModule

from compiler.capture.torch_internals import changed_inputs

if TYPE_CHECKING:
    from compiler.ir.nodes import LoopGraph

_NOTE = "written_back"


def note_written_back(graph: GraphModule) -> None:
    """Leave the note; to be called while AOTAutograd has the graph compiled."""
    graph.meta[_NOTE] = changed_inputs()


def written_back(graph: GraphModule, loops: LoopGraph) -> dict[str, str]:
    """The buffers of those outputs of the lowered graph, each with the input's. One that is an input itself, a part of
    a buffer, or an output twice is none of them."""
    given = [output.buffer for output in loops.outputs]
    found: dict[str, str] = {}
    for place, target in graph.meta.get(_NOTE, {}).items():
        output, name = loops.outputs[place], loops.inputs[target]
        if name is None or output.buffer is None or output.layout != loops.buffers[output.buffer]:
            continue
        if given.count(output.buffer) == 1 and output.buffer not in loops.inputs and name not in given:
            found[output.buffer] = name
    return found
