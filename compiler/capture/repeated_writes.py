"""Writes to a tensor several elements of which are one element of memory, as `expand` makes it.

    y = x.expand(4, 6);  y.add_(1)

Eager mode refuses most of such writes, since what comes of them depends on the order of the elements. AOTAutograd turns
them into values first and sees nothing wrong. A graph with one is therefore left to eager mode, which gives its error.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils._pytree import tree_leaves

#: Calls in place that change how memory is looked at, and not what is in it.
_NO_WRITES = frozenset(
    "t_ squeeze_ unsqueeze_ transpose_ swapaxes_ swapdims_ detach_ requires_grad_ as_strided_ resize_ resize_as_ "
    "set_ rename_ share_memory_ retain_grad_".split()
)
_OPERATORS = frozenset(
    "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem".split()
)


def write_to_repeated_memory(graph: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The first call of Dynamo's graph that writes to a tensor whose elements share memory by a stride of zero."""
    return next((node for node in graph.graph.nodes if any(map(_repeats, _written_by(node)))), None)


def _written_by(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    if node.op not in ("call_method", "call_function"):
        return
    out = [node.kwargs.get("out")]
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    is_in_place = name.endswith("_") and not name.endswith("__") and name not in _NO_WRITES
    if (is_in_place or name in _OPERATORS or node.kwargs.get("inplace") is True) and node.args:
        out.append(node.args[0])
    yield from (leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.fx.Node))


def _repeats(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return False
    pairs = zip(value.shape, value.stride(), strict=True)
    return any(isinstance(stride, int) and stride == 0 and size != 1 for size, stride in pairs if isinstance(size, int))
