"""Parse a kernel's text without what only a debugger needs.

Triton walks the text node by node, and records the line and column of every node for debug information. A kernel that
is compiled to be launched has none (see `cache`), and recording takes a fifth of the walk. The result is the same but
for these records, as `tests/runtime/test_triton_stages.py` checks.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Versions of Triton whose walk is as it is known here.
KNOWN = ("3.6", "3.7")

_in_this_thread = threading.local()


def release_of_triton() -> str:
    """Which Triton this is, but for mended faults."""
    import triton

    return ".".join(str(triton.__version__).split(".")[:2])


@contextmanager
def without_locations() -> Iterator[None]:
    """Within, kernels that this thread compiles are read without lines and columns, where Triton is one that is known;
    see `quick_reading`."""
    _in_this_thread.is_quick = True
    try:
        yield
    finally:
        _in_this_thread.is_quick = False


@contextmanager
def quick_reading() -> Iterator[None]:
    """Within, threads may ask for it."""
    from triton.compiler.code_generator import CodeGenerator

    by_triton = CodeGenerator.visit
    if release_of_triton() in KNOWN:
        CodeGenerator.visit = _visit_of(by_triton)  # type: ignore[method-assign]
    try:
        yield
    finally:
        CodeGenerator.visit = by_triton  # type: ignore[method-assign]


def _visit_of(by_triton: Callable[[Any, ast.AST | None], Any]) -> Callable[[Any, ast.AST | None], Any]:
    from triton import knobs
    from triton.compiler.errors import CompilationError

    def visit(reader: Any, node: ast.AST | None) -> Any:
        # An assertion tells its line when it fails.
        if not getattr(_in_this_thread, "is_quick", False) or reader.builder.options.debug:
            return by_triton(reader, node)
        if node is None:
            return None
        before = reader.cur_node
        if before is None:
            with warnings.catch_warnings():  # which Triton 3.6 does around each node, and the others never
                warnings.simplefilter("ignore", DeprecationWarning)
                return visit_in(reader, node, before)
        return visit_in(reader, node, before)

    def visit_in(reader: Any, node: ast.AST, before: ast.AST | None) -> Any:
        reader.cur_node = node
        try:
            made = ast.NodeVisitor.visit(reader, node)
        except CompilationError:
            raise
        except Exception as error:
            if knobs.compilation.front_end_debugging:
                raise
            raise CompilationError(reader.jit_fn.src, reader.cur_node, repr(error)) from None
        reader.cur_node = before
        return made

    return visit
