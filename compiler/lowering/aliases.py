"""Which values share memory in eager, read off the graph.

    y = aten.sin(x);  v = aten.t(y);  w = aten.repeat(x, [1, 1])

`v` is a view of `y`, so both are one tensor's memory, and whoever gets both may write through either. `w` owns its
memory although here, where a repetition is only another way to read `x`, nothing needed to be stored for it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

#: Views whose schema does not say so: AOTAutograd writes them where nothing else can see what they view.
UNMARKED = frozenset({
    aten._unsafe_view.default, aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default,
})  # fmt: skip


def from_owner(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The node that owns the memory of `node`, then the views on the way from it, `node` itself last."""
    chain = [node]
    while (source := viewed_by(chain[-1])) is not None:
        chain.append(source)
    return chain[::-1]


def viewed_by(node: torch.fx.Node) -> torch.fx.Node | None:
    """What a node is a view of; None where it owns its memory. An item of a list of views has that list between."""
    source = node.args[0] if node.args else None
    if node.op != "call_function" or not isinstance(source, torch.fx.Node):
        return None
    if node.target is operator.getitem:
        return source if viewed_by(source) is not None else None
    return source if is_view(node.target) else None


def conjugates(views: Iterable[torch.fx.Node]) -> bool:
    """Whether the last of them is conjugated to what is in memory."""
    return sum(view.target is aten._conj.default for view in views) % 2 == 1


def is_negated(views: Iterable[torch.fx.Node]) -> bool:
    """Whether the last of them has other signs than what is in memory."""
    return sum(view.target is aten._neg_view.default for view in views) % 2 == 1


def is_view(target: object) -> bool:
    """Whether an operator gives its first argument's memory, in another shape."""
    if not isinstance(target, OpOverload):
        return False
    aliases = [returned.alias_info for returned in target._schema.returns]
    return target in UNMARKED or any(alias is not None and not alias.is_write for alias in aliases)
