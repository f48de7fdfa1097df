"""Which functions and modules a snippet calls at top level, and with what: for snippets that compile nothing."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from compiler.capture.captured import copy_values
from compiler.capture.program.called import Called
from compiler.capture.torch_internals import noting_differentiation
from compiler.wording import SNIPPET_FILE

_OBSERVER = "__fusionscope_observe__"


@dataclass
class TopLevelCall:
    """The first call of one callable from the snippet's top level. It `differentiates` where one of its calls asks
    for gradients itself, as a step of training does."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    has_tensors: bool = True
    differentiates: bool = False

    def differentiate(self) -> None:
        self.differentiates = True


@dataclass
class CallObserver:
    """Keeps, by callable, the first call that passed it a tensor, or else the first call; `calls` is in the order of
    the last such calls."""

    calls: dict[int, TopLevelCall] = field(default_factory=dict)

    def __call__(self, function: Any, name: str) -> Any:
        if not _is_observed(function):
            return function

        def observed(*args: Any, **kwargs: Any) -> Any:
            with noting_differentiation(self._note(function, name, args, kwargs).differentiate):
                return function(*args, **kwargs)

        return observed

    def _note(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TopLevelCall:
        has_tensors = any(isinstance(value, torch.Tensor) for value in tree_leaves((args, kwargs)))
        call = self.calls.get(id(function))
        if call is None or (has_tensors and not call.has_tensors):
            args, kwargs = copy_values((args, kwargs))
            call = TopLevelCall(name, function, args, kwargs, has_tensors)
        if has_tensors:
            self.calls.pop(id(function), None)
        self.calls[id(function)] = call
        return call

    def last_call(self) -> TopLevelCall | None:
        """The last one that passed a tensor."""
        return next((call for call in reversed(self.calls.values()) if call.has_tensors), None)


def observe_top_level_calls(tree: ast.Module, names: dict[str, Any]) -> None:
    """Have every `f(...)` at top level pass `f` through an observer: `f(x)` -> `observe(f, "f")(x)`."""
    names[_OBSERVER] = CallObserver()
    _TopLevel().visit(tree)


def note_call(names: dict[str, Any], called: Called) -> None:
    """As if a program with these names had made that call."""
    args, kwargs = copy_values((called.args, called.kwargs))
    call = TopLevelCall(called.name, called.function, args, kwargs)
    names[_OBSERVER] = CallObserver({id(called.function): call})


def last_top_level_call(names: dict[str, Any]) -> TopLevelCall | None:
    """The last call that passed a tensor."""
    observer = names.get(_OBSERVER)
    return observer.last_call() if isinstance(observer, CallObserver) else None


def top_level_call_of(function: Any, names: dict[str, Any]) -> TopLevelCall | None:
    """A call of that function, with tensors or without."""
    observer = names.get(_OBSERVER)
    return observer.calls.get(id(function)) if isinstance(observer, CallObserver) else None


class _TopLevel(ast.NodeTransformer):
    """A `main` without parameters belongs to the top level: it cannot be explored itself."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = node.args
        takes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        is_main = node.name == "main" and not any(takes) and not node.decorator_list
        return self.generic_visit(node) if is_main else node

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
            observed = ast.copy_location(ast.Call(observer, [node.func, name], []), node.func)
            node.func = ast.fix_missing_locations(observed)
        return node


def _is_observed(function: Any) -> bool:
    if isinstance(function, torch.nn.Module):
        return True
    return isinstance(function, types.FunctionType) and function.__code__.co_filename == SNIPPET_FILE
