"""Convert rows of 16-bit floats before or after a vector loop, by the machine's instructions for it.

    float x_wide[1024], out_wide[1024];
    fs::widen(x_ptr + 4096 * x0 + x1_start, x1_end - x1_start, x_wide);
    for x1 from x1_start to x1_end:  ... out_wide[x1 - x1_start] = x_wide[x1 - x1_start] * ...
    fs::narrow(out_wide, x1_end - x1_start, out_ptr + 4096 * x0 + x1_start);

One element at a time GCC 12 has no such instructions for vectors; it would take ten others for each. And a loop of
floats alone has vectors of one length, without the halves that 16-bit elements are packed of. In the loop, a sum of
float16 takes 3 times as long, a layer norm 2.2, and a GELU of bfloat16 1.16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from compiler.codegen.cpp.kept import cost
from compiler.codegen.cpp.ops import HALF_TYPES
from compiler.codegen.cpp.staging import StagedValues
from compiler.ir.index import Dim
from compiler.ir.size import hint
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


@dataclass(frozen=True)
class Wide(StagedValues):
    """The elements that one load or store moves along a loop; the array has room for `most`."""

    most: int

    @property
    def place(self) -> str:
        """The element of the present point."""
        return self.element(self.name)

    @property
    def declaration(self) -> str:
        return f"alignas(64) float {self.name}[{self.most}];"

    def call(self, pointer: str) -> str:
        """The line that fills the array, or for a store empties it."""
        row = f"{pointer} + {self.first_index}"
        if self.statement.op == "load":
            return f"fs::widen({row}, {self.count}, {self.name});"
        return f"fs::narrow({self.name}, {self.count}, {row});"


def can_be_wide(statement: Statement, dim: Dim, program: Program) -> bool:
    """Whether a load or store moves neighbours along `dim`, all of them, of a half type."""
    index = statement.index
    is_plain = statement.op == "load" and not statement.operands
    is_plain |= statement.op == "store" and not statement.is_scatter and len(statement.operands) == 1
    if not is_plain or statement.buffer is None or index is None:
        return False
    return program.storage[statement.buffer] in HALF_TYPES and index.is_affine and index.stride(dim) == 1


def wide_accesses(program: Program, statements: Sequence[Statement], dim: Dim) -> list[Statement]:
    """The loads and stores that are converted apart from a loop over `dim` which does `statements`: where it computes
    much, and of float16, whose conversion takes more instructions, wherever a vector of them lies."""
    found = [statement for statement in statements if can_be_wide(statement, dim, program)]
    if any(cost(statement) >= KEPT_COST for statement in statements):
        return found
    is_vector = hint(dim.size) >= LANES
    return [s for s in found if is_vector and s.buffer is not None and program.storage[s.buffer] == torch.float16]
