"""Values in Dynamo's graph that do not depend on the call: a triangle of ones, minus infinity above the diagonal.

They are computed, by the graph's own calls on the CPU, so that any way to write a causal mask is known for what it is.
A tensor that an in-place call changes later is the tensor after that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from compiler.capture.torch_internals import outside_fake_mode
from compiler.rewrite.calls import changes_memory, is_same_size, operation, shape_of, tensor_of

#: Nothing that is larger is computed: it would take longer to know a mask than to use it.
MOST_ELEMENTS = 1 << 24

#: Calls that give the same whenever they are made with the same arguments, on any device.
_DETERMINISTIC = frozenset(
    """ones zeros full arange ones_like zeros_like full_like new_ones new_zeros new_full eye tensor
    tril triu masked_fill where fill zero
    eq ne lt le gt ge logical_not logical_and logical_or bitwise_and bitwise_or and or
    add sub rsub mul neg abs minimum maximum clamp
    unsqueeze squeeze view reshape expand transpose permute t getitem setitem repeat contiguous clone detach
    to bool float half double bfloat16 int long type type_as broadcast_to expand_as view_as""".split()
)


def constant_of(node: Any, before: Node) -> torch.Tensor | None:
    """The value that a node has where `before` runs, on the CPU; None where it differs from call to call."""
    if not isinstance(node, Node) or not _is_small(node):
        return None
    order = {other: place for place, other in enumerate(node.graph.nodes)}
    needed = _all_it_depends_on(node, order, order[before])
    if needed is None:
        return None
    values: dict[Node, Any] = {}
    try:
        with outside_fake_mode(), torch.no_grad(), torch.device("cpu"):
            for other in sorted(needed, key=order.__getitem__):
                values[other] = _run(other, values)
    except Exception:  # not knowing a constant only costs a shortcut
        return None
    value = values[node]
    return value if isinstance(value, torch.Tensor) else None


def _all_it_depends_on(node: Node, order: dict[Node, int], end: int) -> set[Node] | None:
    """The calls that make the value, and those before `end` that change it in place; None if one is not constant."""
    changes = [other for other in order if order[other] < end and changes_memory(other)]
    needed: set[Node] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current in needed:
            continue
        if operation(current) not in _DETERMINISTIC or not _is_small(current):
            return None
        needed.add(current)
        waiting += current.all_input_nodes
        waiting += [change for change in changes if change not in needed and current in _memory_behind(change)]
    return needed


def _memory_behind(node: Node) -> Iterator[Node]:
    """What a call's first argument may be a view of: a view's first argument is what it is a view of."""
    while node.args and isinstance(node.args[0], Node):
        node = node.args[0]
        yield node


def _is_small(node: Node) -> bool:
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return value is None
    if not all(isinstance(size, int) for size in value.shape):
        return False
    return value.numel() <= MOST_ELEMENTS


def _run(node: Node, values: dict[Node, Any]) -> Any:
    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
    if isinstance(kwargs.get("device"), torch.device | str):
        kwargs["device"] = torch.device("cpu")
    args = tuple(torch.device("cpu") if isinstance(value, torch.device) else value for value in args)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


def keeps_lower_triangle(node: Any) -> bool | None:
    """For sizes that differ from call to call: whether a square boolean matrix is true on and below the diagonal
    (True), above it (False), or not known to be either (None). It follows tril and triu of ones."""
    name = operation(node)
    if name in ("tril", "triu"):
        return _triangle(node)
    if name in ("bool", "to", "unsqueeze"):
        return keeps_lower_triangle(node.args[0])
    if name == "logical_not":
        value = tensor_of(node)
        is_boolean = value is not None and value.dtype == torch.bool
        return _opposite(keeps_lower_triangle(node.args[0])) if is_boolean else None
    if name in ("eq", "ne") and len(node.args) == 2 and node.args[1] in (0, 1):
        found = keeps_lower_triangle(node.args[0])
        return found if (name == "eq") == (node.args[1] == 1) else _opposite(found)
    return None


def _triangle(node: Node) -> bool | None:
    ones = node.args[0]
    diagonal = node.args[1] if len(node.args) > 1 else node.kwargs.get("diagonal", 0)
    is_ones = operation(ones) in ("ones", "ones_like", "new_ones") and len(ones.users) == 1  # type: ignore[union-attr]
    shape = shape_of(node)
    if not is_ones or len(shape) < 2 or not is_same_size(shape[-1], shape[-2]) or len(node.users) != 1:
        return None
    if operation(node) == "tril":
        return True if diagonal == 0 else None
    return False if diagonal == 1 else None


def _opposite(found: bool | None) -> bool | None:
    return None if found is None else not found
