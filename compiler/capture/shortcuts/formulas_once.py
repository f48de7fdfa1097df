"""Create each formula of symbolic sizes once while Dynamo captures.

As soon as a tensor is made, torch asks whether it is contiguous in each of the ways that it knows. Where its sizes are
open that takes dozens of sums, products and comparisons of them, each a new symbolic formula, and the same for each
tensor that is like it. Here the formula of equal operands is remembered; the number that it gives is a new object, as
torch's is. Formulas depend on their operands alone, but for those of `mod`, which are left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any
from unittest import mock

import sympy
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.sym_node import SymNode

_METHODS = "add sub mul eq ne lt le gt ge and_ or_ int_floordiv sym_max sym_min".split()

Binary = Callable[[SymNode, SymNode], SymNode]


def formulas_once() -> ExitStack:
    """Within, torch makes the formula of an operation on equal sizes once."""
    stack = ExitStack()
    stack.enter_context(mock.patch.object(SymNode, "expr", property(_expression_by(vars(SymNode)["expr"].fget))))
    stack.enter_context(mock.patch.object(SymNode, "maybe_as_int", _as_integer))
    known: dict[Hashable, SymNode] = {}
    for method in _METHODS:
        stack.enter_context(mock.patch.object(SymNode, method, _once(method, getattr(SymNode, method), known)))
    return stack


def _once(method: str, by_torch: Binary, known: dict[Hashable, SymNode]) -> Binary:
    def operation(one: SymNode, other: SymNode) -> SymNode:
        environment = one.shape_env
        if environment is None or type(other) is not SymNode or proxy_tensor.get_proxy_mode():
            return by_torch(one, other)
        if environment._translation_validation_enabled:
            return by_torch(one, other)
        key = (
            method, id(environment),
            one.expr, one.pytype, one._hint, one._optimized_summation,
            other.expr, other.pytype, other._hint, other._optimized_summation,
        )  # fmt: skip
        found = known.get(key)
        if found is None:
            made = by_torch(one, other)
            if type(made) is SymNode and made.constant is None and made._hint is not None:
                known[key] = made
            return made
        copied = SymNode.__new__(SymNode)
        copied.__dict__.update(found.__dict__)
        return copied

    return operation


def _expression_by(by_torch: Callable[[SymNode], Any]) -> Callable[[SymNode], Any]:
    """The property `expr`, which asks a formula at every reading whether it is a number, before it looks whether it has
    been simplified already."""

    def expression(node: SymNode) -> Any:
        # Releases of torch before 2.13 do not count how often something was learnt of a size.
        version = getattr(node.shape_env, "_replacements_version_counter", None)
        if version is not None:
            if version == 0 or isinstance(node._expr, sympy.Integer):
                return node._expr
            if version == node._expr_ver and node._expr_cache is not None:
                return node._expr_cache
        return by_torch(node)

    return expression


def _as_integer(node: SymNode) -> int | None:
    expression = node.expr
    return int(expression) if _is_number(expression) else None


@lru_cache(maxsize=65536)
def _is_number(expression: sympy.Basic) -> bool:
    return bool(expression.is_number)
