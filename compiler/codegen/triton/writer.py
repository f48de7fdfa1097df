"""A writer of indented Python, which notes the loop nodes of each line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from compiler.codegen.naming import identifier
from compiler.ir.size import SizeAtom

_WIDTH = 110


class Writer:
    """Collects lines at an indentation."""

    def __init__(self, indent: int = 0) -> None:
        self._indent = indent
        self._lines: list[str] = []
        self._nodes: list[tuple[int, tuple[str, ...]]] = []

    def line(self, text: str, nodes: tuple[str, ...] = ()) -> None:
        indent = "    " * self._indent
        for part in wrapped_call(text, _WIDTH - len(indent)).split("\n"):
            self._lines.append(indent + part)
            if nodes:
                self._nodes.append((len(self._lines), nodes))

    def blank(self) -> None:
        """An empty line, unless nothing stands before it."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines that stand under `head`, such as an `if`."""
        self.line(f"{head}:")
        self._indent += 1
        yield
        self._indent -= 1

    def store(self, address: str, value: str, masks: Sequence[str] = (), nodes: tuple[str, ...] = ()) -> None:
        self.line(store_text(address, value, masks), nodes)

    def point_to(self, name: str, start: int, dtype: str, nodes: tuple[str, ...], row: str = "") -> None:
        """A pointer to what lies from byte `start` on in the workspace."""
        base = f"(workspace_ptr + {start})" if start else "workspace_ptr"
        self.line(f"{name} = {base}.to(tl.pointer_type({dtype})){row}", nodes)

    @contextmanager
    def last_of(self, counter: str, last: str, name: str = "arrived") -> Iterator[None]:
        """What the program does that finds `last` others counted before itself."""
        self.line(f"{name} = tl.atomic_add({counter}, 1)")
        with self.block(f"if {name} == {last}"):
            self.line("# The counter is left as it was found: zero.")
            self.store(counter, "0")
            yield

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def numbered(self, lines_before: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Line numbers, counted from 1, with their nodes, where `lines_before` stand above."""
        return tuple((lines_before + number, nodes) for number, nodes in self._nodes)


def store_text(address: str, value: str, masks: Sequence[str]) -> str:
    return f"tl.store({', '.join([address, value, *([' & '.join(masks)] if masks else [])])})"


def function_head(name: str, arguments: Iterable[str], *paragraphs: str, sizes: Sequence[SizeAtom] = ()) -> str:
    """A function of Triton down to its docstring; `sizes` are those that the host gives it. One binary serves every
    size: Triton would make another for a size of 1 or one that 16 divides."""
    names = ", ".join(f'"{size.name}"' for size in sizes)
    decorator = f"@triton.jit(do_not_specialize=[{names}])" if names else "@triton.jit"
    define = wrapped_call(f"def {identifier(name)}({', '.join(arguments)}):")
    return f"\n{decorator}\n{define}\n{wrapped_docstring(*paragraphs)}"


def wrapped_docstring(*paragraphs: str) -> str:
    """The docstring of a function, a paragraph to a line where it fits."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]
    body = "\n    ".join(lines)
    return f'    """{body}"""\n'


def wrapped_call(text: str, width: int = _WIDTH) -> str:
    """The text, or where it is too long the arguments of its outermost call (the first with several) on own lines."""
    if len(text) <= width:
        return text
    # The commas and brackets of an assertion's message are none of the call.
    code = re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: "_" * len(found[0]), text)
    for start in (position for position, character in enumerate(code) if character == "("):
        cuts, end = _arguments(code, start)
        if cuts:
            positions = [start, *cuts, end]
            parts = [text[a + 1 : b].strip() for a, b in pairwise(positions)]
            lines = [text[: start + 1], *(f"    {part}," for part in parts), text[end:]]
            return "\n".join(lines)
    return text


def _arguments(text: str, start: int) -> tuple[list[int], int]:
    """The commas directly inside of the bracket at `start`, and the position of the bracket that closes it."""
    depth, cuts = 0, []
    for position in range(start, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 1 and text[position] == ",":
            cuts.append(position)
        if depth == 0:
            return cuts, position
    return [], len(text)
