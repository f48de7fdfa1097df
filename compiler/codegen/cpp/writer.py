"""Lines of C++ with their indentation and the loop nodes that each computes for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_INDENT = "    "
_LINE_LENGTH = 110


class Writer:
    """Takes lines in order; `nodes` are the loop nodes that a line computes for, by which it leads to the source."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._origins: list[tuple[int, tuple[str, ...]]] = []
        self._depth = 0

    def line(self, text: str = "", nodes: tuple[str, ...] = ()) -> None:
        self._lines.append(f"{_INDENT * self._depth}{text}" if text and not text.startswith("#include") else text)
        if nodes:
            self._origins.append((len(self._lines), nodes))

    def comment(self, text: str) -> None:
        self.line(f"// {text}")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head { ... }`, or a bare scope where `head` is empty."""
        self.line(f"{head} {{" if head else "{")
        with self.indented():
            yield
        self.line("}")

    def signature(self, head: str, parameters: list[str]) -> None:
        """`head(parameters) {`, one parameter a line where they do not fit on one."""
        text = f"{head}({', '.join(parameters)}) {{"
        if len(text) <= _LINE_LENGTH:
            self.line(text)
            return
        self.line(f"{head}(")
        with self.indented():
            for position, parameter in enumerate(parameters):
                self.line(parameter + ("," if position + 1 < len(parameters) else ") {"))

    def append(self, other: Writer) -> None:
        """The lines of another writer below those of this one."""
        above = len(self._lines)
        self._lines += other._lines
        self._origins += [(above + number, nodes) for number, nodes in other._origins]

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    @property
    def origins(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return tuple(self._origins)
