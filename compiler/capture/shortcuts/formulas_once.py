"""Create each formula of symbolic sizes once while Dynamo captures.

As soon as a tensor is made, torch asks whether it is contiguous in each of the ways that it knows. Where its sizes are
open that takes dozens of sums, products and comparisons of them, each a new symbolic formula, and the same for each
tensor that is like it. Here the formula of equal operands is remembered; the number that it gives is a new object, as
torch's is. Formulas depend on their operands alone, but for those of `mod`, which are left to torch.

What a formula was found to be, by a guard or without one, it stays: torch forgets that as soon as it learns anything
else about a size. It is remembered where nobody reads the log of what torch finds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

import sympy
from torch._logging._internal import trace_log
from torch.fx.experimental import proxy_tensor, symbolic_shapes
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

_METHODS = "add sub mul eq ne lt le gt ge and_ or_ int_floordiv sym_max sym_min".split()

Binary = Callable[[SymNode, SymNode], SymNode]


def formulas_once() -> ExitStack:
    """Within, torch makes the formula of an operation on equal sizes once."""
    stack = ExitStack()
    stack.enter_context(mock.patch.object(SymNode, "expr", property(_expression_by(vars(SymNode)["expr"].fget))))
    stack.enter_context(mock.patch.object(SymNode, "maybe_as_int", _as_integer))
    # torch keeps as few as 256 expanded formulas.
    expand = lru_cache(maxsize=65536)(symbolic_shapes.safe_expand.__wrapped__)
    stack.enter_context(mock.patch.object(symbolic_shapes, "safe_expand", expand))
    if not trace_log.handlers:
        evaluated = _evaluated_once(ShapeEnv.evaluate_sym_node)
        stack.enter_context(mock.patch.object(ShapeEnv, "evaluate_sym_node", evaluated))
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


def _evaluated_once(by_torch: Callable[..., Any]) -> Callable[..., Any]:
    known: WeakKeyDictionary[ShapeEnv, dict[Hashable, Any]] = WeakKeyDictionary()

    def evaluate(environment: ShapeEnv, node: SymNode, *settings: Any, **more: Any) -> Any:
        found = known.setdefault(environment, {})
        key = node.expr, node._hint, settings, *more.items()
        if key in found:
            return found[key]
        value = by_torch(environment, node, *settings, **more)
        # Without a guard, as where guards are suppressed, a later reading must make one; without a hint, it may fail.
        if node._hint is not None and not ShapeEnv._suppress_guards_tls():
            found[key] = value
        return value

    return evaluate


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
