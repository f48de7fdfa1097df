"""Values in Dynamo's graph that do not depend on the call: a triangle of ones, minus infinity above the diagonal.

They are computed, by the graph's own calls on the CPU, so that any way to write a causal mask is known for what it is.
A tensor that an in-place call changes later is the tensor after that call. What is repeated (a mask that is expanded
over a batch) is computed once: such a value has strides of zero, which `distinct` cuts away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import Node

from compiler.fx.fake_values import outside_fake_mode
from compiler.fx.notes import CONSTANT
from compiler.passes.rewrite.calls import argument, changes_memory, operation, tensor_of
from compiler.passes.rewrite.repeated import distinct, elements_of_pointwise, is_one_number, run_pointwise, told_once

#: Nothing that is larger is computed: it would take longer to know a mask than to use it.
MOST_ELEMENTS = 1 << 24

_POINTWISE = frozenset(
    """masked_fill where eq ne lt le gt ge logical_not logical_and logical_or bitwise_and bitwise_or and or
    add sub rsub mul neg abs minimum maximum clamp
    to bool float half double bfloat16 int long type clone contiguous""".split()
)

#: Calls that give a part of what they are given, or a view of it.
_VIEWS = frozenset("unsqueeze squeeze expand transpose permute t detach broadcast_to expand_as".split())

#: Tensors of one number, and the position of that number among the arguments.
_FILLED = {"ones": 1, "zeros": 0, "ones_like": 1, "zeros_like": 0, "new_ones": 1, "new_zeros": 0}
_FILLED_WITH = {"full": 1, "full_like": 1, "new_full": 2}

#: Other calls that give the same whenever they are made with the same arguments, on any device.
_OTHERS = frozenset(
    """arange eye tensor scalar_tensor tril triu fill zero
    view reshape flatten getitem setitem repeat type_as view_as cumsum diff interpolate""".split()
)

_DETERMINISTIC = _POINTWISE | _VIEWS | _OTHERS | set(_FILLED) | set(_FILLED_WITH)


def constant_of(node: Any, before: Node) -> torch.Tensor | None:
    """The value that a node has where `before` runs, on the CPU; None where it differs from call to call."""
    if not isinstance(node, Node):
        return None
    needed = _all_it_depends_on(node, None)
    if needed is not None and not any(map(changes_memory, needed)):  # the same wherever it is read
        if CONSTANT not in node.meta:  # kept, so that the layers of a model share the work
            node.meta[CONSTANT] = _computed(node, sorted(needed), _run_once)
        return node.meta[CONSTANT]  # type: ignore[no-any-return]
    needed = _all_it_depends_on(node, before)
    return None if needed is None else _computed(node, sorted(needed), _run)


def _computed(node: Node, needed: list[Node], run: Callable[[Node, dict[Node, Any]], Any]) -> torch.Tensor | None:
    if not all(_is_small(other, run is _run) for other in needed):
        return None
    values: dict[Node, Any] = {}
    try:
        with outside_fake_mode(), torch.no_grad(), torch.device("cpu"):
            for other in needed:
                values[other] = run(other, values)
    except Exception:  # not knowing a constant only costs a shortcut
        return None
    value = values[node]
    return value if isinstance(value, torch.Tensor) else None


def _all_it_depends_on(node: Node, before: Node | None) -> set[Node] | None:
    """The calls that make the value, and those before `before` (None: all) that change it in place; None if one is not
    constant."""
    needed: set[Node] = set()
    waiting = [node]
    while waiting:
        found = []
        while waiting:
            current = waiting.pop()
            if current in needed:
                continue
            if operation(current) not in _DETERMINISTIC:
                return None
            needed.add(current)
            found.append(current)
            waiting += _read_by(current)
        waiting = [change for one in found for change in _changes_of(one) if before is None or change < before]
    return needed


def _changes_of(node: Node) -> Iterator[Node]:
    """The calls that have the node among the `memory_behind` them and change that. From what is written down to those
    who use it, as a model has many calls that change something, and what is the same in each call few users."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        for user in current.users:
            if next(memory_behind(user), None) is current and changes_memory(user):
                yield user
            if user.args and user.args[0] is current and user not in seen:
                seen.add(user)
                waiting.append(user)


def _read_by(node: Node) -> list[Node]:
    """What a call reads the values of: of a tensor that another is made like, the shape and dtype alone matter."""
    name = operation(node)
    if name in _FILLED:
        return []
    if name in _FILLED_WITH:
        fill = argument(node, _FILLED_WITH[name], "fill_value")
        return [fill] if isinstance(fill, Node) else []
    return node.all_input_nodes


def memory_behind(node: Node) -> Iterator[Node]:
    """What a call's first argument may be a view of: a view's first argument is what it is a view of. A call with an
    `out` writes to that."""
    written = node.kwargs.get("out")
    if isinstance(written, Node):
        node = written
        yield node
    while node.args and isinstance(node.args[0], Node):
        node = node.args[0]
        yield node


def _is_small(node: Node, is_whole: bool) -> bool:
    """Whether a value may be computed, if what repeats is made in memory too, or if it is not."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return value is None
    if not all(isinstance(size, int) for size in value.shape):
        return False
    is_free = operation(node) in _POINTWISE | _VIEWS | set(_FILLED) | set(_FILLED_WITH) | {"interpolate"}
    return (is_free and not is_whole) or value.numel() <= MOST_ELEMENTS


def _run_once(node: Node, values: dict[Node, Any]) -> Any:
    """`_run`, with what is repeated computed once. Raises ValueError for what is too large nevertheless."""
    name = operation(node) or ""
    expected = tensor_of(node)
    if expected is None:
        return _run(node, values)
    if name in _FILLED or name in _FILLED_WITH:
        return _filled(node, name, values, ())
    if name == "interpolate":
        return _interpolated(node, values).expand(expected.shape)
    if name not in _POINTWISE:
        result = _run(node, values)
        return told_once(result) if isinstance(result, torch.Tensor) and name not in _VIEWS else result
    inputs = [values[read] for read in node.all_input_nodes]
    if elements_of_pointwise(inputs) > MOST_ELEMENTS:
        raise ValueError(f"{node.name} is too large")
    return run_pointwise(lambda cut: _run(node, dict(zip(node.all_input_nodes, cut, strict=True))), inputs)


def _filled(node: Node, name: str, values: dict[Node, Any], shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
    """A tensor of one number, of which `shape` is in memory."""
    expected = tensor_of(node)
    assert expected is not None
    fill: Any = _FILLED[name] if name in _FILLED else argument(node, _FILLED_WITH[name], "fill_value")
    fill = values[fill] if isinstance(fill, Node) else fill
    fill = fill.item() if isinstance(fill, torch.Tensor) else fill
    return torch.full(shape, fill, dtype=expected.dtype).expand(expected.shape)


def _interpolated(node: Node, values: dict[Node, Any]) -> torch.Tensor:
    """One number is that number in any size. Of others the nearest is a matter of rounding, which devices may differ
    in."""
    value = values[node.all_input_nodes[0]]
    if argument(node, 3, "mode", "nearest") != "nearest" or not is_one_number(value):
        raise ValueError(f"{node.name} rounds")
    result: torch.Tensor = distinct(value)
    return result


def _run(node: Node, values: dict[Node, Any]) -> Any:
    name, expected = operation(node) or "", tensor_of(node)
    if expected is not None and (name in _FILLED or name in _FILLED_WITH):
        return _filled(node, name, values, expected.shape)
    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
    if isinstance(kwargs.get("device"), torch.device | str):
        kwargs = {**kwargs, "device": torch.device("cpu")}
    args = tuple(torch.device("cpu") if isinstance(value, torch.device) else value for value in args)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)
