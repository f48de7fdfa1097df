"""Lines of generated Python, each with the loop nodes that it computes for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

_WIDTH = 100


class Writer:
    """Collects lines at an indentation."""

    def __init__(self, indent: int = 0) -> None:
        self._indent = indent
        self._lines: list[str] = []
        self._nodes: list[tuple[int, tuple[str, ...]]] = []

    def line(self, text: str, nodes: tuple[str, ...] = ()) -> None:
        self._lines.append("    " * self._indent + text)
        if nodes:
            self._nodes.append((len(self._lines), nodes))

    def blank(self) -> None:
        """An empty line, unless nothing stands before it."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._indent += 1
        yield
        self._indent -= 1

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def numbered(self, lines_before: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Line numbers, counted from 1, with their nodes, where `lines_before` stand above."""
        return tuple((lines_before + number, nodes) for number, nodes in self._nodes)


def wrapped_docstring(*paragraphs: str) -> str:
    """The docstring of a function, a paragraph to a line where it fits."""
    lines = [line for text in paragraphs for line in textwrap.wrap(text, _WIDTH, break_long_words=False)]
    body = "\n    ".join(lines)
    return f'    """{body}"""\n'
