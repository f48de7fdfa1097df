"""Transpose what a kernel reads or writes across the direction of its vectors, tile by tile.

    float y_turned[64 * 64];
    fs::turn(y_ptr + 2048 * x1_start + x0_start, 2048, x1_end - x1_start, x0_end - x0_start, y_turned, 64);
    for x0 ...:  for x1 ...:  add_ptr[...] = x_ptr[...] + y_turned[64 * (x0 - x0_start) + (x1 - x1_start)]

A compiler would gather such elements one by one. Transposed are the accesses that run along the tile's other variable,
of buffers whose memory this kernel touches in one way only: of a transposing kernel in squares, of the passes over
columns in tiles of a block of columns by some points of the reduction, which of short rows are all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from compiler.codegen.cpp.ops import storage_type
from compiler.ir.index import Dim, Index, Indirect
from compiler.ir.size import text_of
from compiler.schedule.program.program import Program, Statement


@dataclass(frozen=True)
class Tile:
    """Where accesses are transposed: a block of `width` points of the vector loop `inner`, by `height` points of
    `across` from that of the text `first` on and before that of `last`."""

    inner: Dim
    across: Dim
    width: int
    height: int
    first: str
    last: str


@dataclass(frozen=True)
class Transposed:
    """One access by way of a small array, which has a row for each point of `tile.across`."""

    statement: Statement
    #: Of the array.
    name: str
    ctype: str
    tile: Tile

    @property
    def place(self) -> str:
        """The element of the array that belongs to the present point."""
        inner, across = self.tile.inner.name, self.tile.across.name
        row = across if self.tile.first == "0" else f"({across} - {self.tile.first})"
        return f"{self.tile.width} * {row} + ({inner} - {inner}_start)"

    @property
    def declaration(self) -> str:
        return f"alignas(64) {self.ctype} {self.name}[{self.tile.height} * {self.tile.width}];"

    def call(self, pointer: str) -> str:
        """The line that fills the array, or for a store empties it."""
        index, tile = self.statement.index, self.tile
        assert index is not None

        def at_start(atom: Dim | Indirect) -> str:
            assert isinstance(atom, Dim)
            return f"{atom.name}_start" if atom == tile.inner else tile.first if atom == tile.across else atom.name

        first = index.substitute({tile.across: Index.number(0)}) if tile.first == "0" else index
        start, stride = f"{pointer} + {first.render(at_start, '/')}", text_of(index.stride(tile.inner) or 0)
        inner = f"{tile.inner.name}_end - {tile.inner.name}_start"
        across = tile.last if tile.first == "0" else f"{tile.last} - {tile.first}"
        if self.statement.op == "load":
            return f"fs::turn({start}, {stride}, {inner}, {across}, {self.name}, {tile.width});"
        return f"fs::turn({self.name}, {tile.width}, {across}, {inner}, {start}, {stride});"


def transposed_accesses(
    program: Program, tile: Tile, statements: Iterable[Statement], written_over: Collection[str]
) -> dict[int, Transposed]:
    """By statement, the accesses that are transposed. Buffers of `written_over` share their memory with another one."""
    taken = {statement.target for statement in program.statements}
    found: dict[int, Transposed] = {}
    for statement in statements:
        if not can_be_transposed(program, statement, tile.inner, tile.across, written_over):
            continue
        assert statement.buffer is not None
        name = f"{statement.target if statement.op == 'load' else statement.buffer}_turned"
        while name in taken:
            name += "_"
        taken.add(name)
        found[statement.number] = Transposed(statement, name, storage_type(program.storage[statement.buffer]), tile)
    return found


def can_be_transposed(
    program: Program, statement: Statement, inner: Dim, across: Dim, written_over: Collection[str]
) -> bool:
    """Whether an access runs along `across` in memory that is touched in this way only."""
    buffer = statement.buffer
    if buffer is None or buffer in written_over or (buffer in program.reads and buffer in program.writes):
        return False
    return _runs_along(statement, inner, across)


def _runs_along(statement: Statement, inner: Dim, across: Dim) -> bool:
    """Whether a load or store without a mask takes neighbours along `across`, and others along `inner`."""
    index = statement.index
    is_plain = statement.op == "load" and not statement.operands
    is_plain |= statement.op == "store" and not statement.is_scatter and len(statement.operands) == 1
    if not is_plain or index is None or not index.is_affine:
        return False
    return index.stride(across) == 1 and index.stride(inner) not in (None, 0, 1)
