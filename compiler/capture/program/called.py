"""A function of this process in place of a snippet: its arguments, and the lines of its file.

Everything that tells lines knows the snippet by the name of its file. So the code of every function of the user's file
goes by that name while the function is explored, and by its own again afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch

from compiler.wording import SNIPPET_FILE


@dataclass(frozen=True)
class Called:
    """A function or module, and the arguments of one call."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: The name that its code has for the file; "" where it has no code of Python's.
    file: str
    #: The text of that file, or of the notebook's cell; empty where there is none.
    source: str

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Called:
        code = getattr(_plain(function), "__code__", None)
        file = code.co_filename if isinstance(code, CodeType) else ""
        return cls(function, args, kwargs, file, "".join(linecache.getlines(file)) if file else "")

    @property
    def name(self) -> str:
        own = getattr(self.function, "__name__", None)
        return own if isinstance(own, str) else type(self.function).__name__

    @property
    def device(self) -> torch.device:
        """Where its tensors are: that of the first argument or parameter that is not on the CPU, else the CPU."""
        leaves = torch.utils._pytree.tree_leaves((self.args, self.kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if isinstance(self.function, torch.nn.Module):
            tensors += [*self.function.parameters(), *self.function.buffers()]
        return next((tensor.device for tensor in tensors if tensor.device.type != "cpu"), torch.device("cpu"))

    @property
    def differentiates(self) -> bool:
        """Whether it asks for gradients itself, as a step of training does: by the names that its code has."""
        code = getattr(_plain(self.function), "__code__", None)
        return isinstance(code, CodeType) and not {"backward", "grad"}.isdisjoint(code.co_names)

    @contextlib.contextmanager
    def as_snippet(self) -> Iterator[None]:
        """Within the block the functions of its file are those of the snippet."""
        changed: dict[int, tuple[FunctionType, CodeType]] = {}
        for function in _functions_beside(self.function):
            if self.file and function.__code__.co_filename == self.file and id(function) not in changed:
                changed[id(function)] = function, function.__code__
                function.__code__ = _renamed(function.__code__, self.file)
        try:
            yield
        finally:
            for function, code in changed.values():
                function.__code__ = code


def computes_nothing(function: Any) -> bool:
    """Whether a call of it only makes a coroutine or a generator, and runs none of its code."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_kind(one) for is_kind in kinds for one in (called, getattr(called, "__call__", None)))  # noqa: B004


def _plain(function: Any) -> Any:
    """The function of Python that is meant: of a module its `forward`, of another object the `__call__` of its class,
    of a partial or a wrapped one the inner one."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, torch.nn.Module):
        function = type(function).forward
    elif isinstance(call := inspect.getattr_static(type(function), "__call__", None), FunctionType):
        function = call
    function = inspect.unwrap(function) if callable(function) else function
    return getattr(function, "__func__", function)


def _functions_beside(function: Any) -> Iterator[FunctionType]:
    """It, and the functions and methods that it may call: of the names that it knows, and of its submodules."""
    plain = _plain(function)
    if not isinstance(plain, FunctionType):
        return
    modules = list(function.modules()) if isinstance(function, torch.nn.Module) else []
    values = [plain, *plain.__globals__.values(), *(cell.cell_contents for cell in _cells(plain))]
    for value in [*values, *map(type, modules)]:
        if isinstance(value, torch.nn.Module):
            value = type(value)
        members = list(vars(value).values()) if isinstance(value, type) else [value]
        for member in members:
            found = _plain(member) if callable(member) or isinstance(member, staticmethod | classmethod) else member
            if isinstance(found, FunctionType):
                yield found


def _cells(function: FunctionType) -> list[Any]:
    """Those of its closure that hold something."""
    found = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # empty: the name is not bound yet
            cell.cell_contents  # noqa: B018 - whether it raises is the question
            found.append(cell)
    return found


def _renamed(code: CodeType, file: str) -> CodeType:
    """The same code, and the code of functions within it, as of the snippet's file."""
    inner = tuple(
        _renamed(one, file) if isinstance(one, CodeType) and one.co_filename == file else one for one in code.co_consts
    )
    return code.replace(co_filename=SNIPPET_FILE, co_consts=inner)
