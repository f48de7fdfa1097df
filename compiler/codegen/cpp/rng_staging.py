"""Stage random numbers in an array just before a vector loop reads them.

    float rand_numbers[1024 + 6];
    const float* rand_drawn = fs::draw(seeds_ptr[0], 4096 * x0 + x1_start, x1_end - x1_start, rand_numbers);
    for x1 from x1_start to x1_end:  ... rand_drawn[x1 - x1_start] ...

One draw of the generator is four numbers in a row, or eight that are only compared. A loop that asks for one number at
each point would draw so many times as often, and together with much else it is too much for some compilers to make
vectors of. A dropout takes 4.5 times as long then, a dropout of a GELU 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.codegen.cpp.staging import StagedValues
from compiler.ir.index import Dim
from compiler.ir.size import Integer
from compiler.schedule.program.program import Program, Statement

#: What draws the numbers of each kind of statement, and for how many numbers besides the array has room.
DRAWS = {"rand": ("draw", 6), "rand_compared": ("draw_compared", 14)}

#: Numbers of one array: enough to make the calls cheap, and few enough to stay in the cache with all else.
RANDOM_BLOCK = 1024
#: The longest loop that may have its numbers in one array.
MOST_STAGED = 8192


@dataclass(frozen=True)
class StagedRandom(StagedValues):
    """The numbers of one statement along a loop: the array is `NAME_numbers`, with room for `most`, and the pointer to
    the first point's number `NAME_drawn`."""

    most: Integer

    @property
    def place(self) -> str:
        """The number of the present point."""
        return self.element(f"{self.name}_drawn")

    def lines(self, seed: str) -> tuple[str, str]:
        """What declares the array, and what fills it."""
        numbers = f"{self.name}_numbers"
        draw, room = DRAWS[self.statement.op]
        return (
            f"float {numbers}[{self.most} + {room}];",
            f"const float* {self.name}_drawn = fs::{draw}({seed}, {self.first_index}, {self.count}, {numbers});",
        )


def can_stage_random(statement: Statement, dim: Dim, statements: Mapping[int, Statement]) -> bool:
    """Whether the numbers follow each other along `dim`, with a seed that is one for the loop."""
    index = statement.index
    if statement.op not in DRAWS or index is None or not index.is_affine or index.stride(dim) != 1:
        return False
    seed = statements[statement.operands[0]]
    return seed.op == "load" and not seed.operands and seed.index is not None and not seed.index.dims


def stages_random_along(program: Program, dim: Dim) -> bool:
    """Whether some statement of a program can be drawn along a loop."""
    statements = {statement.number: statement for statement in program.statements}
    return any(can_stage_random(statement, dim, statements) for statement in program.statements)
