"""Common subexpression elimination: calls that repeat an earlier one.

    a = aten.sum(x, [1]);  b = aten.sum(x, [1])        ->        b is a

Two calls are the same where operator, arguments and stream are, and where nothing but those decides the result: no
random numbers, no effects, no operator of somebody's own, no memory that is left as it was found.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from compiler.fx.fake_values import UNDEFINED
from compiler.lowering.streams import stream_of

_NAMESPACES = frozenset(("aten", "prims"))


class Repeats:
    """The first call of each kind that was met."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Node] = {}
        #: Each call that repeats an earlier one, with that one.
        self.of: dict[Node, Node] = {}

    def earlier(self, node: Node) -> Node | None:
        """The call that computed the same before, if there was one; remembers this one otherwise."""
        if not _depends_on_arguments_alone(node):
            return None
        key = (stream_of(node), node.target, self._key(node.args), self._key(tuple(sorted(node.kwargs.items()))))
        first = self._first.setdefault(key, node)
        if first is node:
            return None
        self.of[node] = first
        return first

    def _key(self, value: Any) -> Hashable:
        """Arguments as a key; 1, 1.0 and True differ, as do 0.0 and -0.0."""
        if isinstance(value, Node):
            return self.of.get(value, value)
        if isinstance(value, list | tuple):
            return (type(value).__name__, *map(self._key, value))
        if isinstance(value, slice):
            return ("slice", *map(self._key, (value.start, value.stop, value.step)))
        return type(value).__name__, repr(value)


def _depends_on_arguments_alone(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, OpOverload) and _is_plain(node.target)


@cache
def _is_plain(target: OpOverload) -> bool:
    return (
        target.namespace in _NAMESPACES
        and not target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in target.tags
        and target._schema.name.split("::")[1] not in UNDEFINED
        and bool(target._schema.returns)
    )
