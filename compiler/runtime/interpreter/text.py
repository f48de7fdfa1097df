"""The text of a Triton kernel's module as functions for Triton's interpreter.

Triton rewrites each function that it interprets: every value that is assigned becomes a tensor first, as a number would
otherwise follow Python's rules and not the language's. It reads the function's lines again for that, and walks through
all of its expressions three times. Here a module is parsed once, and only its statements are visited.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from triton.runtime import interpreter as stock

#: The name in a module's namespace of what makes tensors of values.
_TO_TENSOR = "__to_tensor__"


class InterpretedCode:
    """A function of the module. The language's reductions and scans ask for `fn` of what they combine with."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.fn(*arguments, **keywords)


def interpreted(text: str, file: str, name: str) -> dict[str, Any]:
    """The namespace of the module, called `name`, that is said to be in `file`; each function stands there as an
    `InterpretedCode`. They may be called within `triton_interpreter.interpreting`."""
    module = ast.parse(text, file)
    functions = [statement for statement in module.body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        function.decorator_list.clear()  # they would make it one for Triton's compiler
        for statement in _assignments(function.body):
            statement.value = _as_tensor(statement.value)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": name, "__file__": file, _TO_TENSOR: _to_tensor}
    exec(compile(module, file, "exec"), namespace)
    for function in functions:
        namespace[function.name] = InterpretedCode(namespace[function.name])
    return namespace


def _assignments(body: Sequence[ast.stmt]) -> Iterator[ast.Assign]:
    """Those among the statements and what they hold."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            yield statement
        for inner in ("body", "orelse"):
            yield from _assignments(getattr(statement, inner, ()))


def _as_tensor(value: ast.expr) -> ast.expr:
    name = ast.copy_location(ast.Name(_TO_TENSOR, ast.Load()), value)
    return ast.copy_location(ast.Call(name, [value], []), value)


def _to_tensor(value: Any) -> Any:
    """As it is where the language knows no tensor of its type: a tuple, say."""
    return stock.interpreter_semantic.to_tensor(value, False)
