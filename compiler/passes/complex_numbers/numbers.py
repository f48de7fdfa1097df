"""The conjugate of a Python number is a number.

    _conj(1j), which autograd writes for the gradient of `1j * x`     ->     -1j

torch makes a tensor of it each time that it is run; loops compute with the number itself. The tensor has 128 bits,
which another tensor without dims takes over, and a number does not: there it stays a tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from compiler.devices import Device
from compiler.options import Options
from compiler.passes.writing import copied

aten = torch.ops.aten


def conjugate_numbers(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` with conjugates of numbers as numbers, or `graph` itself where there are none."""
    if not any(map(_is_of_number, graph.graph.nodes)):
        return graph, ()
    copy = copied(graph)
    for node in filter(_is_of_number, list(copy.graph.nodes)):
        number = node.args[0].conjugate()
        if any(user.meta["val"].dtype == torch.complex128 for user in node.users if "val" in user.meta):
            settings = {"dtype": torch.complex128, "device": node.meta["val"].device}
            node.target, node.args, node.kwargs = aten.scalar_tensor.default, (number,), settings
        else:
            _put_in_place_of(node, number)
            copy.graph.erase_node(node)
    copy.recompile()
    return copy, ()


def _put_in_place_of(node: Node, number: complex) -> None:
    def replaced(argument: Node) -> Any:
        return number if argument is node else argument

    for user in list(node.users):
        user.args = map_arg(user.args, replaced)
        user.kwargs = map_arg(user.kwargs, replaced)


def _is_of_number(node: Node) -> bool:
    return node.target is aten._conj.default and isinstance(node.args[0], int | float | complex)
