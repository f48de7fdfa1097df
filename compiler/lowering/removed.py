"""Record what lowering removed: views, constants, casts and copies that change nothing, repeated calls.

None of them becomes a loop. The list is read off what lowering made, so it holds nothing that was not removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node

from compiler.fx.notes import COMPUTED_FOR, lines_noted
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import LoopGraph, Removed, RemovedKind
from compiler.lowering.values import TensorValue

aten = torch.ops.aten

#: Longer formulas say less than their length.
_LONGEST_FORMULA = 80


def removed_nodes(
    graph: torch.fx.Graph, values: Mapping[Node, Any], repeats: Mapping[Node, Node], made: LoopGraph
) -> tuple[Removed, ...]:
    """Every call of `graph` that became no node of `made`, in order."""
    origins = {origin for node in made.nodes for origin in node.origins}
    found: list[Removed] = []
    for node in graph.nodes:
        if node.op != "call_function" or node.name in origins or COMPUTED_FOR in node.meta:
            continue
        kind: RemovedKind = "common_subexpression"
        if node in repeats:
            because = f"`{repeats[node].name}` computed the same from the same arguments"
        elif isinstance(node.target, torch._ops.OpOverload) and isinstance(values.get(node), TensorValue):
            kind, because = _what_it_is(node, values[node])
        else:
            continue
        found.append(Removed(kind, node.name, lines_noted(node), because))
    return tuple(found)


def _what_it_is(node: Node, value: TensorValue) -> tuple[RemovedKind, str]:
    if value.buffer is None:
        return "constant", "it reads no tensor: its readers compute its elements where they need them"
    if node.target is aten._to_copy.default:
        return "cast", f"`{value.buffer}` has that dtype already"
    if node.target in (aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default):
        return "copy", f"its readers read `{value.buffer}` itself, which nothing changes"
    return "view", f"its readers read `{value.buffer}` {_where(value)}"


def _where(value: TensorValue) -> str:
    """The element of the buffer that each element of a view is."""
    assert value.offset is not None
    dims = tuple(Dim(f"d{axis}", size) for axis, size in enumerate(value.shape))
    try:
        formula = str(value.offset(tuple(Index.of(dim) for dim in dims)))
    except Exception:  # a position that holds a loaded value is no formula of the view's own
        return "at computed indices"
    return f"at {formula}" if len(formula) <= _LONGEST_FORMULA else "at indices that a longer formula tells"
