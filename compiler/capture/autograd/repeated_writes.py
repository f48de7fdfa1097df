"""Writes that eager mode refuses, or that AOTAutograd gives other values.

    y = x.expand(4, 6);  y.add_(1)      several elements are one element of memory
    x[1:].add_(x[:-1])                  what is read is partly what is written
    y = x.expand(4, 6);  y[0].add_(1)   one element is written, through a view that has it several times
    x.unfold(0, 2, 3).add_(1)           the view has gaps between its windows
    x.T.add_(1);  x.as_strided((2,), (1,))      memory is looked at by strides of its own

Eager mode refuses most of the first two. AOTAutograd turns them into values first and sees nothing wrong. It writes the
third by its difference, x + sum(y - x), which rounds and is NaN where x is infinite, and the fourth with zeros in the
gaps (PyTorch 2.13, `expand_inverse` and `unfold_inverse` of its functionalisation). In the last the new value of x may
have other strides than x had. A graph with one of them is left to eager mode, which gives its error or the exact value.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._pytree import tree_leaves

from compiler.capture.autograd.overlaps import is_wrapped, overlap_partly, repeats, share_storage

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


def write_to_repeated_memory(graph: torch.fx.GraphModule) -> tuple[torch.fx.Node, str] | None:
    """The first such call of Dynamo's graph, and what it writes to, as a sentence about it goes on."""
    strided = [value for node in graph.graph.nodes if _is_strided(node) and (value := _value(node)) is not None]
    found = ((node, _cause(to, node, strided)) for node in graph.graph.nodes for to in _written_by(node))
    return next(((node, cause) for node, cause in found if cause is not None), None)


def _cause(written: torch.Tensor, call: torch.fx.Node, strided: list[torch.Tensor]) -> str | None:
    views = list(_written_through(call))
    if any(name_of_target(view) == "unfold" for view in views):
        return "through windows of unfold"
    if any(map(repeats, (written, *(value for view in views if (value := _value(view)) is not None)))):
        return "through a view several elements of which are one element of memory, as expand makes them"
    read = [node for node in call.all_input_nodes if call.target is not operator.setitem or node is not call.args[0]]
    if any(overlap_partly(written, other) for node in read if (other := _value(node)) is not None):
        return "to memory that another argument of the call overlaps"
    return "to memory that as_strided looks at" if _is_looked_at(written, call, strided) else None


def _is_looked_at(written: torch.Tensor, call: torch.fx.Node, strided: list[torch.Tensor]) -> bool:
    """Whether `as_strided` views have elements of what a call writes to. A write through such a view of an input leaves
    the input's strides, and so does one to a contiguous tensor that is no view."""
    if not any(share_storage(written, view) for view in strided):
        return False
    views = list(_written_through(call))
    if len(views) == 1:
        return not _is_contiguous(_value(views[0]))
    return not (len(views) == 2 and _is_strided(views[0]) and views[1].op == "placeholder")


def _is_contiguous(value: torch.Tensor | None) -> bool:
    expected: Any = 1
    for size, step in zip(reversed(value.shape), reversed(value.stride()), strict=True) if value is not None else ():
        if not statically_known_true(step == expected):
            return False
        expected = expected * size
    return value is not None


def _is_strided(node: torch.fx.Node) -> bool:
    return name_of_target(node) == "as_strided"


def _written_through(call: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The tensors through which a call in place writes: its first argument, and what that is a view of."""
    node = call.args[0] if "out" not in call.kwargs else None
    while isinstance(node, torch.fx.Node) and (value := _value(node)) is not None:
        yield node
        source = node.args[0] if node.args else None
        before = _value(source)
        node = source if before is not None and share_storage(value, before) else None


def _written_by(node: torch.fx.Node) -> Iterator[torch.Tensor]:
    """What a call writes to: of `x[:, 0] = y`, the first column."""
    if node.target is operator.setitem:
        whole, index = _value(node.args[0]), torch.fx.map_arg(node.args[1], _value)
        if whole is not None:
            yield _part_of(whole, index)
        return
    written = [node.kwargs.get("out")]
    if is_in_place(node) and name_of_target(node) not in _NO_WRITES:
        written += node.args[:1]
    values = (_value(leaf) for leaf in tree_leaves(written))
    yield from (value for value in values if value is not None)


def _part_of(whole: torch.Tensor, index: Any) -> torch.Tensor:
    """The elements at an index. Indices that a tensor or a list tells, or that are not known, may be any."""
    parts = index if isinstance(index, tuple) else (index,)
    numbers = [n for part in parts for n in ((part.start, part.stop, part.step) if isinstance(part, slice) else [part])]
    is_known = all(number is None or number is Ellipsis or type(number) is int for number in numbers)
    return whole[index] if is_known and not is_wrapped(whole) else whole


def _value(node: Any) -> torch.Tensor | None:
    """The example of a node's value, if that is a tensor with strides."""
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) and value.layout == torch.strided else None
