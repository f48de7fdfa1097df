"""Calls in Dynamo's graph, whichever way the user spelt them.

`a @ b`, `torch.matmul(a, b)`, `a.matmul(b)` and `torch.bmm(a, b)` are four targets in Dynamo's graph and one operation.
In-place ones (`scores += mask`) have the name of what they compute; who asks must see to it that nothing else reads the
tensor that they change.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

#: Where a function must come from for its name to mean anything: a user's own function may be called `softmax` too.
_NAMESPACES = (operator, torch, torch.nn.functional, torch.special, torch.functional, torch._C._nn)

_SYNONYMS = {
    "bmm": "matmul",
    "true_divide": "div",
    "truediv": "div",
    "itruediv": "div",
    "divide": "div",
    "imul": "mul",
    "multiply": "mul",
    "iadd": "add",
    "isub": "sub",
    "subtract": "sub",
    "invert": "logical_not",
    "bitwise_not": "logical_not",
    "swapaxes": "transpose",
    "swapdims": "transpose",
}

#: torch's own attention, and its parameters as far as they may be given by their positions.
ATTENTION = torch.nn.functional.scaled_dot_product_attention
ATTENTION_PARAMETERS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")

_IN_PLACE_OPERATORS = frozenset((operator.iadd, operator.isub, operator.imul, operator.itruediv))


@dataclass(frozen=True)
class Called:
    """What became of a call: the id of the reason, and what exactly was found."""

    reason: str
    detail: str


def operation(node: Any) -> str | None:
    """The name of what a node computes; None for what is no call of torch's own."""
    if not isinstance(node, Node):
        return None
    if node.op == "call_method":
        return _plain(str(node.target).strip("_"))
    if node.op != "call_function" or isinstance(node.target, str):
        return None
    name = getattr(node.target, "__name__", "")
    if any(getattr(namespace, name, None) is node.target for namespace in _NAMESPACES):
        return _plain(name.strip("_"))
    return None


def _plain(name: str) -> str:
    return _SYNONYMS.get(name, name)


def argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    """One argument of a call, given by position or by name."""
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def operands(node: Node) -> tuple[Any, Any]:
    """Both operands of a call that takes two."""
    second = next((node.kwargs[name] for name in ("other", "mat2", "tensor2") if name in node.kwargs), None)
    return argument(node, 0, "input"), node.args[1] if len(node.args) > 1 else second


def tensor_of(node: Any) -> torch.Tensor | None:
    """The fake tensor that Dynamo has for a node."""
    value = node.meta.get("example_value") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def shape_of(node: Node) -> tuple[Any, ...]:
    value = tensor_of(node)
    assert value is not None
    return tuple(value.shape)


def is_same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are known to be equal. Comparing symbolic ones outright would add a guard, or fail for one that
    only the run determines."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return not isinstance(a, int) and not isinstance(b, int) and bool(a.node.expr == b.node.expr)


def is_same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(is_same_size, a, b))


def changes_memory(node: Node) -> bool:
    """Whether a call may write to a tensor that it was given, or change the mode that later calls run in."""
    if node.op == "call_method":
        name = str(node.target)
        return (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
    if node.op != "call_function":
        return node.op == "call_module"
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable
    if isinstance(target, torch._ops.OpOverloadPacket | torch._ops.HigherOrderOperator) or "out" in node.kwargs:
        return True
    if node.kwargs.get("inplace"):
        return True
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", None) in ("builtins", "math"):
        return False
    if getattr(operator, name, None) is target:
        return name in ("setitem", "delitem") or (name[0] == "i" and hasattr(operator, f"__{name[1:]}__"))
    return operation(node) is None or name.endswith("_")


def is_in_place(node: Node) -> bool:
    """Whether a call gives its first argument, changed: `x.mul_(2)`, `x *= 2`."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op == "call_method":
        return name.endswith("_") and not name.endswith("__")
    return node.op == "call_function" and node.target in _IN_PLACE_OPERATORS


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
