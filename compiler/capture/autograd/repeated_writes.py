"""Writes whose result depends on the order of the elements.

    y = x.expand(4, 6);  y.add_(1)      several elements are one element of memory
    x[1:].add_(x[:-1])                  what is read is partly what is written

Eager mode refuses most of such writes. AOTAutograd turns them into values first and sees nothing wrong. A graph with
one is therefore left to eager mode, which gives its error.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils._pytree import tree_leaves

from compiler.capture.torch_internals import may_overlap

#: Calls in place that change how memory is looked at, and not what is in it.
_NO_WRITES = frozenset(
    "t_ squeeze_ unsqueeze_ transpose_ swapaxes_ swapdims_ detach_ requires_grad_ as_strided_ resize_ resize_as_ "
    "set_ rename_ share_memory_ retain_grad_".split()
)
#: Functions of `operator`: `x += y`, `x[0] = y`; and those whose names end as if they were such.
_IN_PLACE = frozenset(
    "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem delitem".split()
)
_PLAIN = frozenset("and_ or_ not_ is_".split())


def is_in_place(node: torch.fx.Node) -> bool:
    """Whether a call of Dynamo's graph changes its first argument, by its name."""
    if node.op not in ("call_method", "call_function"):
        return False
    name = name_of_target(node)
    ends_so = name.endswith("_") and not name.endswith("__") and name not in _PLAIN
    return ends_so or name in _IN_PLACE or node.kwargs.get("inplace") is True


def name_of_target(node: torch.fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def write_to_repeated_memory(graph: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The first call of Dynamo's graph that writes to a tensor whose elements share memory by a stride of zero, or to
    one that partly overlaps another argument of the call."""
    return next((node for node in graph.graph.nodes if any(_is_refused(to, node) for to in _written_by(node))), None)


def _is_refused(written: torch.fx.Node, call: torch.fx.Node) -> bool:
    return _repeats(written) or any(_overlap_partly(written, other) for other in call.all_input_nodes)


def _written_by(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    written = [node.kwargs.get("out")]
    if is_in_place(node) and name_of_target(node) not in _NO_WRITES:
        written += node.args[:1]
    yield from (leaf for leaf in tree_leaves(written) if isinstance(leaf, torch.fx.Node))


def _repeats(node: torch.fx.Node) -> bool:
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return False
    pairs = zip(value.shape, value.stride(), strict=True)
    return any(isinstance(stride, int) and stride == 0 and size != 1 for size, stride in pairs if isinstance(size, int))


def _overlap_partly(written: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Whether two tensors of fixed sizes have elements of memory in common, and not each the one at its place. Those
    that `torch.func` wraps, as `vmap` does, do not tell their memory."""
    values = [node.meta.get("example_value") for node in (written, other)]
    if not all(isinstance(x, torch.Tensor) and x.layout == torch.strided for x in values):
        return False
    one, two = (x for x in values if isinstance(x, torch.Tensor))
    if any(map(torch._C._functorch.is_functorch_wrapped_tensor, (one, two))):
        return False
    if one.untyped_storage()._cdata != two.untyped_storage()._cdata:
        return False
    layouts = [(*x.shape, *x.stride(), x.storage_offset()) for x in (one, two)]
    is_known = all(isinstance(number, int) for layout in layouts for number in layout)
    return is_known and layouts[0] != layouts[1] and may_overlap(one, two)
