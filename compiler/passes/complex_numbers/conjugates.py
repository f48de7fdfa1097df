"""Conjugates that no loop computes, written as less.

    clone(_conj(z)), which torch writes before a product              ->     conj_physical(z)
    _conj(1j), which autograd writes for the gradient of `1j * x`     ->     -1j

In eager mode the conjugate that is copied is a view. Here it is a library call where no loop computes it, whose result
owns its memory, so that each number was copied twice.

Of a Python number torch makes a tensor each time that it is run; loops compute with the number itself. The tensor has
128 bits, which another tensor without dims takes over, and a number does not: there it stays a tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from compiler.devices import Device
from compiler.fx.notes import STANDS_FOR
from compiler.options import Options
from compiler.passes.writing import with_calls_rewritten

aten = torch.ops.aten


def conjugate_numbers(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` with conjugates of numbers as numbers, or `graph` itself where there are none."""
    return with_calls_rewritten(graph, aten._conj.default, _is_of_number, _put_number_in_place_of), ()


def _is_of_number(conjugate: Node) -> bool:
    return isinstance(conjugate.args[0], int | float | complex)


def _put_number_in_place_of(conjugate: Node) -> None:
    number = conjugate.args[0].conjugate()  # type: ignore[union-attr]

    def replaced(argument: Node) -> Any:
        return number if argument is conjugate else argument

    if any(user.meta["val"].dtype == torch.complex128 for user in conjugate.users if "val" in user.meta):
        settings = {"dtype": torch.complex128, "device": conjugate.meta["val"].device}
        conjugate.target, conjugate.args, conjugate.kwargs = aten.scalar_tensor.default, (number,), settings
        return
    for user in list(conjugate.users):
        user.args = map_arg(user.args, replaced)
        user.kwargs = map_arg(user.kwargs, replaced)
    conjugate.graph.erase_node(conjugate)


def conjugate_as_copied(graph: GraphModule, device: Device, options: Options) -> tuple[GraphModule, tuple[()]]:
    """A copy of `graph` in which copies conjugate, or `graph` itself where there are none."""
    return with_calls_rewritten(graph, aten.clone.default, _is_of_conjugate, _conjugate), ()


def _is_of_conjugate(copy: Node) -> bool:
    """Whether it is one that keeps the strides, as conjugating does."""
    view = copy.args[0]
    keeps_strides = copy.kwargs.get("memory_format") in (None, torch.preserve_format)
    return isinstance(view, Node) and view.target is aten._conj.default and keeps_strides


def _conjugate(copy: Node) -> None:
    view: Any = copy.args[0]
    copy.target, copy.args, copy.kwargs = aten.conj_physical.default, view.args, {}
    if not view.users:
        copy.meta[STANDS_FOR] = (*copy.meta.get(STANDS_FOR, ()), view.name)
        copy.graph.erase_node(view)
