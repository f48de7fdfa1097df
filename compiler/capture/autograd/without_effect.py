"""Calls of Dynamo's graph that the ATen graph leaves out: no result needs them, or they return their argument.

AOTAutograd leaves both out without a word, so they are found by setting the two graphs side by side.
"""

from __future__ import annotations

from compiler.report import FxNode, Graph, Removed

#: Methods that return the tensor itself where it has the wanted dtype, device or strides already.
_CASTS = frozenset(("to", "type", "type_as", "float", "half", "double", "bfloat16", "int", "long"))
_COPIES = frozenset(("contiguous",))
#: Those that never move a tensor to another device, whatever their arguments.
_OF_DTYPE_ALONE = frozenset(("float", "half", "double", "bfloat16", "int", "long"))


def without_effect(graph: Graph) -> list[Removed]:
    """The calls of `graph.fx` for which nothing has to be done, in order."""
    nodes = {node.name: node for node in graph.fx}
    computed = {line for node in graph.aten if node.op == "call_function" for line in node.lines}
    found = []
    for node in graph.fx:
        if node.dead and node.op.startswith("call_"):
            found.append(Removed(kind="dead", node=node.name, lines=node.lines, because=_DEAD))
        elif _gives_its_tensor(node, nodes) and (_stays(node) or computed.isdisjoint(node.lines)):
            is_cast = node.target in _CASTS
            because = f"`{node.args[0]}` has {'that dtype' if is_cast else 'those strides'} already"
            found.append(Removed(kind="cast" if is_cast else "copy", node=node.name, lines=node.lines, because=because))
    return found


_DEAD = "no result of the program needs it"


def _stays(node: FxNode) -> bool:
    """Whether the call cannot have moved its tensor to another device, of which a graph's nodes do not tell."""
    return node.target in _COPIES | _OF_DTYPE_ALONE or node.text == f"to({node.args[0]}, {node.dtype})"


def _gives_its_tensor(node: FxNode, nodes: dict[str, FxNode]) -> bool:
    if node.op != "call_method" or node.target not in _CASTS | _COPIES or "copy=True" in node.text or not node.args:
        return False
    given = nodes.get(node.args[0])
    if given is None or node.shape is None:
        return False
    return (node.shape, node.stride, node.dtype) == (given.shape, given.stride, given.dtype)
