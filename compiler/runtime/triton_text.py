"""The text of a Triton kernel's module as a module, without a file.

Triton reads a kernel's source through `inspect`, which asks `linecache`; an entry there stands for the file. Its name
also goes into the debug information, which is how a line of PTX finds its line of the kernel.

Nothing here reads torch: helpers that compile do without (see `compile_helper`).
"""

from __future__ import annotations

import linecache
from functools import lru_cache
from types import CodeType
from typing import Any


def execute(text: str, file: str, name: str) -> dict[str, Any]:
    """The namespace of the module, called `name`, that is said to be in `file`."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": name, "__file__": file}
    exec(code_of(text, file), namespace)
    return namespace


@lru_cache(maxsize=512)
def code_of(text: str, file: str) -> CodeType:
    """What Python compiles of the module."""
    return compile(text, file, "exec")


def text_of(function: Any) -> tuple[str, str]:
    """The text of the module that a Triton function comes from, and its file."""
    file = function.fn.__globals__["__file__"]
    return "".join(linecache.getlines(file)), file
