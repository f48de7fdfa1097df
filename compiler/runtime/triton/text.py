"""The text of a Triton kernel's module as a module, without a file.

Triton reads a kernel's source through `inspect`, which asks `linecache`; an entry there stands for the file. Its name
also goes into the debug information, which is how a line of PTX finds its line of the kernel.

Triton tells kernels apart by their text and that of all that they call, which it finds by a walk through what Python
parses of each. Here a module's text says all that, which is told it beforehand: what is not in the text is Triton's
own, the hash of which is part of a kernel's key as well.

Nothing here reads torch: helpers that compile do without (see `compile_helper`).
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any


class WrongKernel(ValueError):
    """The text has no such kernel, or not with such arguments; the message says what is wrong."""


@dataclass(frozen=True)
class TritonKernel:
    """A function with what Triton is to know of its arguments: types by name, values of constants, what is known of
    places; and with Triton's options."""

    function: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    attributes: Any
    options: dict[str, Any]
    notes: list[str] = field(default_factory=list)


_lock = threading.RLock()
#: The name in a module's namespace by which it is known as one that is executed here.
_MARK = "__fusionscope__"


def execute(text: str, file: str, name: str) -> dict[str, Any]:
    """The namespace of the module, called `name`, that is said to be in `file`."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": name, "__file__": file, _MARK: True}
    with _quick_blocks():
        exec(code_of(text, file), namespace)
    function: Any = namespace.get(name)
    if "hash" in getattr(function, "__dict__", {}):  # of Triton's compiler, not of its interpreter
        function.hash = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    return namespace


class _QuickInspect:
    """Python's `inspect`, which finds a function's lines by tokens, for texts whose functions end where no line is
    indented any more. That is half of what it takes to load a kernel."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def getsourcelines(self, function: Callable[..., Any]) -> tuple[list[str], int]:
        is_ours = getattr(function, "__globals__", {}).get(_MARK) is not None
        return block_of(function) if is_ours else inspect.getsourcelines(function)


@contextmanager
def _quick_blocks() -> Iterator[None]:
    """Within, Triton finds functions so. Another thread's, of a file that is not ours, may be looked for as well, and
    is found as ever."""
    from triton.runtime import jit

    with _lock:
        before = vars(jit)["inspect"]
        vars(jit)["inspect"] = _QuickInspect()
        try:
            yield
        finally:
            vars(jit)["inspect"] = before


def block_of(function: Callable[..., Any]) -> tuple[list[str], int]:
    """The lines of a function in a module that is executed here, from its decorator on, and the number of the first."""
    code = function.__code__
    lines, first = linecache.getlines(code.co_filename), code.co_firstlineno - 1
    place = first
    while not lines[place].startswith("def "):
        place += 1
    while not lines[place].endswith(":\n"):
        place += 1
    end = place + 1
    for following in range(place + 1, len(lines)):
        if lines[following].startswith(" "):
            end = following + 1
        elif lines[following] != "\n":
            break
    return lines[first:end], first + 1


@lru_cache(maxsize=512)
def code_of(text: str, file: str) -> CodeType:
    """What Python compiles of the module."""
    return compile(text, file, "exec")


def text_of(function: Any) -> tuple[str, str]:
    """The text of the module that a Triton function comes from, and its file."""
    file = function.fn.__globals__["__file__"]
    return "".join(linecache.getlines(file)), file


def _in_a_copy() -> None:
    """Of this process, where whoever holds the lock is not."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_in_a_copy)
