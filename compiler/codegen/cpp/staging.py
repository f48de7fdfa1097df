"""Staging buffers: arrays that are filled before a vector loop, or emptied after it."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.index import Dim, Index, Indirect
from compiler.schedule.program.program import Statement


@dataclass(frozen=True)
class StagedValues:
    """The values of one statement along the loop `dim`, whose points start at the text `start`, `count` of them. The
    array is named by `name`."""

    statement: Statement
    name: str
    dim: Dim
    start: str
    count: str

    def element(self, array: str) -> str:
        """The element of `array` that is the present point's."""
        point = self.dim.name if self.start == "0" else f"{self.dim.name} - {self.start}"
        return f"{array}[{point}]"

    @property
    def first_index(self) -> str:
        """The text of the statement's index at the first point."""
        index = self.statement.index
        assert index is not None
        at_start = index if self.start != "0" else index.substitute({self.dim: Index.number(0)})
        return at_start.render(self._at_start, "/")

    def _at_start(self, atom: Dim | Indirect) -> str:
        assert isinstance(atom, Dim)
        return self.start if atom == self.dim else atom.name
