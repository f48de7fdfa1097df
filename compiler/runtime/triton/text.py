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
import linecache
from dataclasses import dataclass, field
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


def execute(text: str, file: str, name: str) -> dict[str, Any]:
    """The namespace of the module, called `name`, that is said to be in `file`."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": name, "__file__": file}
    exec(compile(text, file, "exec"), namespace)
    function: Any = namespace.get(name)
    if "hash" in getattr(function, "__dict__", {}):  # of Triton's compiler, not of its interpreter
        function.hash = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    return namespace


def text_of(function: Any) -> tuple[str, str]:
    """The text of the module that a Triton function comes from, and its file."""
    file = function.fn.__globals__["__file__"]
    return "".join(linecache.getlines(file)), file
