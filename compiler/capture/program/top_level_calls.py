"""Which functions and modules a snippet calls at top level, and with what: for snippets that compile nothing."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.capture.captured import copy_values
from compiler.capture.program.called import Called
from compiler.wording import SNIPPET_FILE

_OBSERVER = "__fusionscope_observe__"


@dataclass
class TopLevelCall:
    """The first call of one callable from the snippet's top level."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class CallObserver:
    """Keeps, by callable, the first call that passed it a tensor; `calls` is in the order of the last such calls."""

    calls: dict[int, TopLevelCall] = field(default_factory=dict)

    def __call__(self, function: Any, name: str) -> Any:
        if not _is_observed(function):
            return function

        def observed(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())):
                call = self.calls.pop(id(function), None)
                self.calls[id(function)] = call or TopLevelCall(name, function, *copy_values((args, kwargs)))
            return function(*args, **kwargs)

        return observed

    def last_call(self) -> TopLevelCall | None:
        return list(self.calls.values())[-1] if self.calls else None


def observe_top_level_calls(tree: ast.Module, names: dict[str, Any]) -> None:
    """Have every `f(...)` at top level pass `f` through an observer: `f(x)` -> `observe(f, "f")(x)`.

    A snippet that speaks of compiling is left as it is: what it compiles is explored, whatever else it calls.
    """
    if not _mentions_compiling(tree):
        names[_OBSERVER] = CallObserver()
        _TopLevel().visit(tree)
        ast.fix_missing_locations(tree)


def note_call(names: dict[str, Any], called: Called) -> None:
    """As if a program with these names had made that call."""
    args, kwargs = copy_values((called.args, called.kwargs))
    call = TopLevelCall(called.name, called.function, args, kwargs)
    names[_OBSERVER] = CallObserver({id(called.function): call})


def last_top_level_call(names: dict[str, Any]) -> TopLevelCall | None:
    observer = names.get(_OBSERVER)
    return observer.last_call() if isinstance(observer, CallObserver) else None


class _TopLevel(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id not in ("super", "locals", "globals", "exec", "eval"):
            name = ast.Constant(node.func.id)
            observer = ast.Name(_OBSERVER, ast.Load())
            node.func = ast.copy_location(ast.Call(observer, [node.func, name], []), node.func)
        return node


def _is_observed(function: Any) -> bool:
    if isinstance(function, torch.nn.Module):
        return True
    return isinstance(function, types.FunctionType) and function.__code__.co_filename == SNIPPET_FILE


def _mentions_compiling(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("compile", "_dynamo"):
            return True
        if isinstance(node, ast.alias) and node.name.rsplit(".")[-1] in ("compile", "_dynamo"):
            return True
    return False
