"""Names of a graph's inputs as the user wrote them.

AOTAutograd calls inputs `arg0_1` and `primals_3`; Dynamo knows that they are the local `x` and the weight of
`self.fc`. Buffers, kernel parameters and variables are named after inputs, so they get the user's names:

    l_x_                                      ->  x
    l_self_modules_fc_parameters_weight_      ->  fc_weight
    g_model_modules_0_parameters_bias_        ->  model_0_bias
"""

from __future__ import annotations

import re

import torch

_PATH = re.compile(r"_(?:modules|parameters|buffers)_")
_POSITION = re.compile(r"arg(\d+)_1$|primals_(\d+)$")


def user_name(placeholder: str) -> str:
    """The user's name of what Dynamo calls `placeholder`."""
    name = re.sub(r"^[lLgG]_(?=.)", "", placeholder)
    name = name.removesuffix("_") or placeholder
    owner, *members = _PATH.split(name)
    path = "_".join(members)
    # The parts of a Sequential are numbered; its own name makes a name of the number.
    return f"{owner}_{path}" if path[:1].isdigit() else path or name


def input_names(dynamo: torch.fx.GraphModule) -> list[str]:
    return [user_name(node.name) for node in dynamo.graph.nodes if node.op == "placeholder"]


def name_inputs(part: torch.fx.GraphModule, names: list[str]) -> None:
    """Rename the placeholders of an ATen graph that are inputs of the graph that Dynamo captured.

    Where AOTAutograd changed their number (inputs that share memory become one), all keep their names.
    """
    positions = {node: position for node in part.graph.nodes if (position := _position(node)) is not None}
    if any(position >= len(names) for position in positions.values()):
        return
    for node, position in positions.items():
        node._rename(names[position])
        node.target = node.name
    part.recompile()


def _position(node: torch.fx.Node) -> int | None:
    found = _POSITION.match(node.name) if node.op == "placeholder" else None
    if found is None:
        return None
    return int(found[1]) if found[1] is not None else int(found[2]) - 1
