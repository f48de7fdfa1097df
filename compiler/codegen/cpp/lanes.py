"""Sums of short rows that each lane of a vector gathers for itself, to be joined behind the loops.

    float sum_lanes[16] = {};
    for r0_start in steps of 16:  for each of 16 lanes:  sum_lanes[lane] += x_ptr[r0_start + lane]
    sum += fs::sum_of_lanes<16>(sum_lanes)

OpenMP's clause for reductions has compilers add the lanes one after the other wherever the vector loop ends, which is
at each turn of a loop around it, and in a short row takes longer than the row does. In a long row it is better: its sum
stays in a register, where the lanes of blocks that are not written out one after the other are kept in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from compiler.codegen.cpp.collisions import keeps_apart
from compiler.codegen.cpp.plan import Plan
from compiler.codegen.cpp.reductions import Accumulator
from compiler.codegen.cpp.wide import LANES
from compiler.codegen.program import Statement
from compiler.ir.index import Dim
from compiler.ir.ops import RANDOM
from compiler.ir.size import hint

#: Points of an innermost loop that have a lane each, and turns of the loops around it that are worth it.
FEWEST_LANES, MOST_LANES, FEWEST_TURNS = 4, 64, 4
#: Points of the longest row that goes in blocks of lanes.
SHORT_ROW = 128


@dataclass(frozen=True)
class Lanes:
    """`count` lanes for the innermost reduction loop `dim`: one for each of its points, or for those of each block."""

    dim: Dim
    count: int

    @property
    def has_blocks(self) -> bool:
        return self.dim.size != self.count

    @property
    def place(self) -> str:
        """The element of the present point's lane."""
        return f"[{self.dim.name}_lane]" if self.has_blocks else f"[{self.dim.name}]"


def lanes_of(plan: Plan, statements: Sequence[Statement], accumulators: Sequence[Accumulator]) -> Lanes | None:
    """The lanes of a pass that does `statements`, which are in no pieces, if it sums up floats and nothing else."""
    if plan.shape != "rows" or not plan.r_loops or not all(isinstance(dim.size, int) for dim in plan.r_loops):
        return None
    *around, dim = plan.r_loops
    assert isinstance(dim.size, int)
    are_sums = bool(accumulators) and all(a.kind == "sum" and a.dtype.is_floating_point for a in accumulators)
    if not are_sums or any(s.op in (*RANDOM, "scan") for s in statements) or not keeps_apart(dim, statements):
        return None
    if around and FEWEST_LANES <= dim.size <= MOST_LANES and prod(hint(loop.size) for loop in around) >= FEWEST_TURNS:
        return Lanes(dim, dim.size)
    is_cut = plan.is_cut and not around
    return Lanes(dim, LANES) if not is_cut and 2 * LANES <= dim.size <= SHORT_ROW else None
