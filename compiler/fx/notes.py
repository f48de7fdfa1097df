"""What the compiler notes at FX graphs and at their nodes, in `meta`: every key that is its own, with its meaning.

A note goes with its node through passes, torch's own among them, and from a graph to its copies. Whatever one stage
tells the next of a whole graph besides is a field of a value; see `compiler/compile.py`. Keys of torch are `val`,
`example_value`, `stack_trace`, `custom`, `seq_nr` and a few more.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Node

# --- of a node

#: Lines of the user's source, from 1, the innermost last.
LINES = "lines"
#: Of a call that a pass wrote: names of the captured nodes that it is computed for.
COMPUTED_FOR = "computed_for"
#: Of a captured call that took others in: their names, the first one that of a convolution.
STANDS_FOR = "stands_for"
#: The name of a call in Dynamo's graph, which what is written in its place has as well.
CAPTURED_NAME = "captured_name"
#: Of a call in a joint graph: the rewrite that it came of, as its subject and its reason.
REWRITTEN = "rewritten"
#: The record of a product until its graph is compiled: `passes.padding.choice.PaddingChoice`.
PADDING = "padding"
#: Of a convolution: it is to be a loop.
IS_DEPTHWISE_LOOP = "is_depthwise_loop"
#: Of a scatter: it could as well change a part of its input.
UPDATES_INPUT = "updates_input"
#: The value of a node of Dynamo's graph that is the same in every call; None where it is not known.
CONSTANT = "constant"

# --- of a graph

#: Positions of the outputs that AOTAutograd copies into an input after each call, each with the input's; and those of
#: the outputs that it gives as views of inputs.
WRITTEN_BACK, GIVEN_AS_VIEWS = "written_back", "given_as_views_of_inputs"
#: Sizes that depend on data, by their symbols, as they were in the first call.
FIRST_SIZES = "first_sizes"
#: What a forward and its backward graph know of each other, at the one and at the other: `passes.layout.passed.Passed`.
FORWARD, BACKWARD = "passes_to_backward", "passed_by_forward"


def lines_noted(node: Node) -> tuple[int, ...]:
    return tuple(node.meta.get(LINES, ()))


def all_lines_noted(nodes: Iterable[Node]) -> tuple[int, ...]:
    """The lines of several nodes in order, each once."""
    return tuple(sorted({line for node in nodes for line in lines_noted(node)}))


def origins(node: Node) -> tuple[str, ...]:
    """Names of the captured nodes that a node is computed for, its own first where it is one of them."""
    computed_for: Iterable[str] = node.meta.get(COMPUTED_FOR) or (node.name, *node.meta.get(STANDS_FOR, ()))
    return tuple(computed_for)
