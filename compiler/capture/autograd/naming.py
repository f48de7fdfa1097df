"""Names of a graph's inputs as the user wrote them.

AOTAutograd calls inputs `arg0_1` and `primals_3`; Dynamo knows that they are the local `x` and the weight of
`self.fc`. Buffers, kernel parameters and variables are named after inputs, so they get the user's names:

    l_x_                                      ->  x
    l_self_modules_fc_parameters_weight_      ->  fc_weight
    g_model_modules_0_parameters_bias_        ->  model_0_bias

FX drops letters outside of ASCII from names, so these are spelled: `psi` for ψ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

import torch
from torch.fx.experimental.symbolic_shapes import free_symbols

_PATH = re.compile(r"_(?:modules|parameters|buffers)_")
_POSITION = re.compile(r"arg(\d+)_1$|primals_(\d+)$")
_SYMBOL = re.compile(r"[a-z]+\d+")


def user_name(placeholder: str) -> str:
    """The user's name of what Dynamo calls `placeholder`."""
    name = re.sub(r"^[lLgG]_(?=.)", "", placeholder)
    name = name.removesuffix("_") or placeholder
    owner, *members = _PATH.split(name)
    path = "_".join(members)
    # The parts of a Sequential are numbered; its own name makes a name of the number.
    return f"{owner}_{path}" if path[:1].isdigit() else path or name


def input_names(dynamo: torch.fx.GraphModule, part: torch.fx.GraphModule) -> list[str]:
    """The user's names of a graph's inputs, of which `part` is the ATen graph. None takes the name of a size: an open
    one, which Dynamo calls by its symbol, `s77`, or a late one, which code calls by it too, `u0`."""
    placeholders = [_in_ascii(node) for node in dynamo.graph.find_nodes(op="placeholder")]
    names = list(map(user_name, placeholders))
    if not any(map(_SYMBOL.fullmatch, names)):
        return names
    sizes = {str(size) for node in part.graph.nodes for size in free_symbols(node.meta.get("val"))}
    return [own if name in sizes else name for own, name in zip(placeholders, names, strict=True)]


def _in_ascii(placeholder: torch.fx.Node) -> str:
    """Dynamo's name of an input, with every letter of the user's."""
    argument = placeholder.meta.get("grapharg")
    if argument is None or argument.source.name.isascii():
        return placeholder.name
    return re.sub(r"[^a-zA-Z0-9]+", "_", "".join(map(_spelled, argument.source.name)))


def _spelled(letter: str) -> str:
    """`a` of ä, and the last word of what Unicode calls ψ."""
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return plain or unicodedata.name(letter, "").rpartition(" ")[2].lower()


def names_by_position(part: torch.fx.GraphModule, names: Sequence[str]) -> dict[int, str]:
    """The name of each input of an inference or forward graph, by the position that AOTAutograd gives it there and in
    the backward graph. Before them come the tokens that keep calls with effects in their order.

    It is empty where AOTAutograd changed the number of inputs otherwise (inputs that share memory become one).
    """
    calls = part.graph.find_nodes(op="call_function", target=torch.ops.higher_order.with_effects)
    tokens = {call.args[0] for call in calls}
    inputs = [position for node, position in _positions(part) if node not in tokens]
    return dict(zip(inputs, names, strict=True)) if len(inputs) == len(names) else {}


def name_inputs(part: torch.fx.GraphModule, names: Mapping[int, str]) -> None:
    """Rename the placeholders of an ATen graph that are inputs of the graph that Dynamo captured."""
    for node, position in _positions(part):
        if position in names:
            node._rename(names[position])
            node.target = node.name
    part.recompile()


def _positions(part: torch.fx.GraphModule) -> list[tuple[torch.fx.Node, int]]:
    placeholders = part.graph.find_nodes(op="placeholder")
    return [
        (node, int(found[1]) if found[1] else int(found[2]) - 1)
        for node in placeholders
        if (found := _POSITION.match(node.name))
    ]
