"""Staging buffers: arrays that stand for elements of memory, or for random numbers, around a vector loop. Those of what
is read are filled before it, those of what is stored are emptied after it.

    float x_wide[1024];                                     rows of 16-bit floats, converted by the machine's
    fs::widen(x_ptr + 4096 * x0 + x1_start, x1_end - x1_start, x_wide);                      instructions for it

    float rand_numbers[1024 + 6];                           all numbers of each draw of the generator
    const float* rand_drawn = fs::draw(seeds_ptr[0], 4096 * x0 + x1_start, x1_end - x1_start, rand_numbers);

    float y_transposed[64 * 64];                                tiles of what runs across the direction of vectors
    fs::transpose(y_ptr + 2048 * x1_start + x0_start, 2048, x1_end - x1_start, x0_end - x0_start, y_transposed, 64);

One element at a time GCC 12 has no instructions for vectors of 16-bit floats; it would take ten others for each. In the
loop, a sum of float16 takes 3 times as long, a layer norm 2.2, and a GELU of bfloat16 1.16. One draw is four numbers in
a row, or eight that are only compared: a dropout that draws at each point takes 4.5 times as long, of a GELU 3.5. And
what lies across a vector would be gathered one by one. Transposed are accesses of buffers whose memory the kernel
touches in one way only: of a transposing kernel in squares, of the passes over columns in tiles of a block of columns
by some points of the reduction, which of short rows are all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

from compiler.codegen.cpp.kept import cost
from compiler.codegen.cpp.ops import storage_type
from compiler.ir.index import Dim, Index, Indirect
from compiler.ir.ops import HALF_TYPES
from compiler.ir.size import Integer, hint, text_of
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.tiles.passes import KEPT_COST

#: Elements of a block that is one vector, whose array the compiler keeps in a register.
LANES = 16
#: Elements of one block of a loop without blocks of its own: few enough for several rows in the first-level cache.
WIDE_BLOCK = 1024
#: Elements of one block of a row that several passes go over, and bytes of all its arrays from which on it has blocks:
#: in a first-level cache the elements of the other passes wait beside them.
ROW_BLOCK, MOST_CACHED = 256, 1 << 15
#: The longest loop whose rows are converted at a time.
MOST_WIDE = 4096
#: Random numbers of one array: enough to make the calls cheap, and few enough to stay in the cache with all else; and
#: the longest loop that may have its numbers in one array.
RANDOM_BLOCK, MOST_DRAWN = 1024, 8192
#: What draws the numbers of each kind of statement, and for how many numbers besides the array has room.
_DRAWS = {"rand": ("draw", 6), "rand_compared": ("draw_compared", 14)}


@dataclass(frozen=True)
class Staged:
    """The array `name` of elements of `dtype`, and the text of the present point's `element` in it, for what
    `statement` loads, stores or draws; with the lines that declare it, and that fill or empty it."""

    statement: Statement
    name: str
    dtype: torch.dtype
    element: str
    declaration: str
    call: str


@dataclass(frozen=True)
class Row:
    """The points of a loop over `dim`, no more than `most`: all of them, or those of the present block."""

    dim: Dim
    is_block: bool
    most: Integer

    @property
    def element(self) -> str:
        return f"{self.dim.name} - {self.dim.name}_start" if self.is_block else self.dim.name

    @property
    def count(self) -> str:
        return f"{self.dim.name}_end - {self.dim.name}_start" if self.is_block else text_of(self.dim.size)

    def first(self, statement: Statement) -> str:
        """The text of a statement's index at the first point."""
        return _index_at(statement, {self.dim: f"{self.dim.name}_start" if self.is_block else "0"})


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


def _index_at(statement: Statement, points: Mapping[Dim, str]) -> str:
    """The text of a statement's index at these points of some loops."""
    index = statement.index
    assert index is not None

    def name(atom: Dim | Indirect) -> str:
        assert isinstance(atom, Dim)
        return points.get(atom, atom.name)

    return index.substitute({dim: Index.number(0) for dim, text in points.items() if text == "0"}).render(name, "/")


def widened(statement: Statement, name: str, row: Row, pointer: str) -> Staged:
    """The elements that one load or store moves along a row, as floats."""
    memory, declaration = f"{pointer} + {row.first(statement)}", f"alignas(64) float {name}[{row.most}];"
    call = f"fs::narrow({name}, {row.count}, {memory});"
    if statement.op == "load":
        call = f"fs::widen({memory}, {row.count}, {name});"
    return Staged(statement, name, torch.float32, row.element, declaration, call)


def drawn(statement: Statement, name: str, numbers: str, row: Row, seed: str) -> Staged:
    """The random numbers of one statement along a row, in an array `numbers`; `name` points to the first."""
    draw, room = _DRAWS[statement.op]
    declaration = f"float {numbers}[{row.most} + {room}];"
    call = f"const float* {name} = fs::{draw}({seed}, {row.first(statement)}, {row.count}, {numbers});"
    return Staged(statement, name, torch.float32, row.element, declaration, call)


def transposed(statement: Statement, name: str, tile: Tile, pointer: str, dtype: torch.dtype) -> Staged:
    """What one access moves of a tile; the array has a row for each point of `tile.across`."""
    index, inner, across = statement.index, tile.inner.name, tile.across.name
    assert index is not None
    is_from_start = tile.first == "0"
    start = f"{pointer} + {_index_at(statement, {tile.inner: f'{inner}_start', tile.across: tile.first})}"
    stride, columns = text_of(index.step(tile.inner)), f"{inner}_end - {inner}_start"
    rows = tile.last if is_from_start else f"{tile.last} - {tile.first}"
    call = f"fs::transpose({name}, {tile.width}, {rows}, {columns}, {start}, {stride});"
    if statement.op == "load":
        call = f"fs::transpose({start}, {stride}, {columns}, {rows}, {name}, {tile.width});"
    row = across if is_from_start else f"({across} - {tile.first})"
    element = f"{tile.width} * {row} + ({inner} - {inner}_start)"
    declaration = f"alignas(64) {storage_type(dtype)} {name}[{tile.height} * {tile.width}];"
    return Staged(statement, name, dtype, element, declaration, call)


# What can be staged.


def wide_accesses(program: Program, statements: Sequence[Statement], dim: Dim) -> list[Statement]:
    """The loads and stores that are converted apart from a loop over `dim` which does `statements`: where it computes
    much, and of float16, whose conversion takes more instructions, wherever a vector of them lies."""
    is_costly, is_vector = any(cost(s) >= KEPT_COST for s in statements), hint(dim.size) >= LANES
    dtypes = HALF_TYPES if is_costly else (torch.float16,) if is_vector else ()
    found = [s for s in statements if _is_affine_access(s) and s.index is not None and s.index.stride(dim) == 1]
    return [s for s in found if program.dtype_of(s) in dtypes]


def can_be_drawn(statement: Statement, dim: Dim, statements: Mapping[int, Statement]) -> bool:
    """Whether the numbers follow each other along `dim`, with a seed that is one for the loop."""
    index = statement.index
    if statement.op not in _DRAWS or index is None or not index.is_affine or index.stride(dim) != 1:
        return False
    seed = statements[statement.operands[0]]
    return seed.op == "load" and not seed.operands and seed.index is not None and not seed.index.dims


def can_be_transposed(
    program: Program, statement: Statement, inner: Dim, across: Dim, written_over: Collection[str]
) -> bool:
    """Whether an access takes neighbours along `across`, and others along `inner`, in memory that is touched in this
    way only. Buffers of `written_over` share their memory with another one."""
    buffer, index = statement.buffer, statement.index
    if buffer is None or buffer in written_over or (buffer in program.reads and buffer in program.writes):
        return False
    if not _is_affine_access(statement) or index is None:
        return False
    return index.stride(across) == 1 and index.stride(inner) not in (None, 0, 1)


def _is_affine_access(statement: Statement) -> bool:
    """Whether it is a load or a store without a mask, at indices that no loaded value decides."""
    is_plain = statement.op == "load" and not statement.operands
    is_plain |= statement.op == "store" and not statement.is_scatter and len(statement.operands) == 1
    return is_plain and statement.index is not None and statement.index.is_affine
