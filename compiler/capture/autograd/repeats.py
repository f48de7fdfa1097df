"""Keep repeated calls of a training step. AOTAutograd's partitioner drops them silently.

    joint      a = sin(x), b = sin(x), y = a * b ...      ->      a = sin(x), y = a * a ...

So they are looked for before the split, and what is in neither graph after it is noted at the call that it repeats. In
a graph that is not split, lowering finds and tells them itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from compiler.fx.lines import lines_of_text
from compiler.fx.notes import REPEATS
from compiler.report import Removed


@dataclass(frozen=True)
class Repeat:
    """A call by its name, and the name of the earlier one with the same operator and arguments."""

    name: str
    of: str
    lines: tuple[int, ...]


def repeats_in(joint: GraphModule) -> list[Repeat]:
    """The calls of a joint graph that repeat an earlier one. What draws random numbers repeats nothing."""
    found: list[Repeat] = []
    first: dict[Any, Node] = {}
    stands_for: dict[Node, Node] = {}
    for node in joint.graph.nodes:
        if node.op != "call_function" or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            continue
        try:
            call = (node.target, _known(node.args, stands_for), _known(node.kwargs, stands_for))
            earlier = first.setdefault(call, node)
        except TypeError:  # an argument that has no hash: AOTAutograd cannot tell either
            continue
        if earlier is not node:
            stands_for[node] = earlier
            found.append(Repeat(node.name, earlier.name, lines_of_text(node.meta.get("stack_trace"))))
    return found


def _known(argument: Any, stands_for: dict[Node, Node]) -> Any:
    """Something that is equal for equal arguments; 1 and 1.0 and True are three."""
    if isinstance(argument, Node):
        return stands_for.get(argument, argument)
    if isinstance(argument, list | tuple):
        return tuple(_known(item, stands_for) for item in argument)
    if isinstance(argument, dict):
        return tuple((name, _known(value, stands_for)) for name, value in argument.items())
    return type(argument), argument


def note_repeats(repeats: list[Repeat], forward: GraphModule, backward: GraphModule) -> None:
    """Leave word of those that the split dropped, at the call that they repeat, in the first graph that has it."""
    nodes: dict[str, Node] = {}
    for graph in (forward, backward):
        for node in graph.graph.nodes:
            if node.op == "call_function":
                nodes.setdefault(node.name, node)
    for repeat in repeats:
        if repeat.name not in nodes and repeat.of in nodes:
            nodes[repeat.of].meta.setdefault(REPEATS, []).append(repeat)


def removed_repeats(graph: GraphModule) -> Iterator[Removed]:
    """What was noted in one graph of a training step, as the report has it."""
    for node in graph.graph.nodes:
        for repeat in node.meta.get(REPEATS, ()) if node.op == "call_function" else ():
            because = f"`{node.name}` computed the same from the same arguments"
            yield Removed(kind="common_subexpression", node=repeat.name, lines=list(repeat.lines), because=because)
