"""A snippet as a Python program: parsed, fitted to the device, and run as `__main__`."""

from __future__ import annotations
import __future__

import ast
import contextlib
import linecache
import sys
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest import mock

import torch

from compiler.annotations import has_shape_annotations
from compiler.capture.program.absent import ABSENT, Absent, stand_in_for_absent
from compiler.capture.program.called import Called
from compiler.capture.program.device import STAND_IN, CudaStandIn, cuda_to_cpu, may_name_cuda
from compiler.capture.program.notebook import Commands, parse_without_commands
from compiler.capture.program.top_level_calls import note_call, observing_top_level_calls
from compiler.wording import SNIPPET_FILE


@dataclass
class Snippet:
    """The parsed source. `tree` is what is run on `device`. `cuda_lines` of it were rewritten for the CPU. `absent` are
    packages that are not installed, each with the line of its first import. `commands` are those of a notebook in it.
    """

    source: str
    device: torch.device
    tree: ast.Module
    module: types.ModuleType
    cuda_lines: list[int] = field(default_factory=list)
    absent: dict[str, int] = field(default_factory=dict)
    commands: Commands = field(default_factory=Commands)
    #: A function of this process that is explored in the place of a program.
    called: Called | None = None

    @property
    def names(self) -> dict[str, object]:
        """The snippet's globals once it has run."""
        return self.module.__dict__


def parse_snippet(source: str, device: torch.device) -> Snippet:
    """Parse for `device`. Raises SyntaxError with the author's line.

    As Python does, this takes no notice of a byte order mark; and as IPython does, not of the indentation that all
    lines of a program share which was copied from within a block.
    """
    source = source.removeprefix("\ufeff")
    if source.lstrip("\r\n")[:1] in (" ", "\t"):
        source = textwrap.dedent(source)
    _register_source(source)
    tree, commands = parse_without_commands(source)
    cuda_lines = cuda_to_cpu(tree) if device.type == "cpu" and may_name_cuda(source) else []
    absent = stand_in_for_absent(tree)
    module = types.ModuleType("__main__")
    module.__dict__.update({"__file__": SNIPPET_FILE, "__builtins__": __builtins__})
    module.__dict__.update({STAND_IN: CudaStandIn, ABSENT: Absent})
    return Snippet(source, device, tree, module, cuda_lines, absent, commands)


def snippet_of(called: Called) -> Snippet:
    """A program that has made that call and nothing else, with the text of the function's file as its own."""
    _register_source(called.source)
    module = types.ModuleType("__main__")
    module.__dict__["__file__"] = SNIPPET_FILE
    note_call(module.__dict__, called)
    return Snippet(called.source, called.device, ast.Module([], []), module, called=called)


def run_snippet(snippet: Snippet) -> None:
    """Execute the snippet as a script, inside `as_main`. Whatever it raises passes through."""
    if snippet.called is not None:
        return
    flags = 0
    if has_shape_annotations(snippet.tree):
        # `x: f32[4096, 4096]` says what x is like; f32 need not be a name when the program runs.
        flags = __future__.annotations.compiler_flag
    with observing_top_level_calls(snippet.tree, snippet.names, snippet.device):
        code = compile(snippet.tree, SNIPPET_FILE, "exec", flags=flags, dont_inherit=True)
        exec(code, snippet.names)


@contextlib.contextmanager
def as_main(module: types.ModuleType) -> Iterator[None]:
    """Stand in for `__main__`, where pickle, dataclasses and Dynamo look for what the snippet defines."""
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = module
    try:
        with mock.patch.object(sys, "argv", [SNIPPET_FILE]):
            yield
    finally:
        if before is not None:
            sys.modules["__main__"] = before


def _register_source(source: str) -> None:
    """Let tracebacks, inspect and Dynamo read the source, of which there is no file."""
    lines = [line + "\n" for line in source.splitlines()]
    linecache.cache[SNIPPET_FILE] = (len(source), None, lines, SNIPPET_FILE)
