"""The tile of a kernel: which loops it spans, how large its blocks are, how many warps run it.

The kinds of plan, of which `choose` takes one for a group and a device:

    pointwise            x: blocks along all loops together; reductions over windows too, written out (`over_windows`)
    pointwise, 2-D       y, x: where one side walks memory along another loop than the other side (a transpose)
    persistent           x, r: all of r in registers, every value loaded and computed once
    looped               x, r: blocks of r, one loop for each pass
    split                looped over a part of r; the last program of a row to finish combines the parts
    team                 a part of r in registers; the programs of a row exchange what they reduce and go on
    look_back            a chunk of r in registers; each program of a scan waits for what those before it come to

What is reduced across x as well makes a program of a persistent or looped plan take several blocks of x; the last
program to finish joins what they gathered (see `triton/reductions/across.py`). Of a split plan, the last program of
each row leaves what the last of all joins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal

from compiler.ir.index import Dim
from compiler.ir.size import Integer, ceiling_quotient, is_multiple, known, next_power_of_two, product
from compiler.schedule.group import Space
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.cooperative import CooperativeReduction
from compiler.schedule.tiles.look_back import Chunks

Kind = Literal["pointwise", "persistent", "looped", "split", "team", "look_back", "product"]

#: Bytes of one tensor that a thread moves: two 16-byte accesses in flight hide the latency of one.
BYTES_PER_THREAD = 32


@dataclass(frozen=True)
class Axis:
    """One axis of the tile: `dims` (slowest first) run through together in blocks of `block`.

    A scalar axis has one element a program and no place in the shape of values."""

    name: Literal["x", "y", "r", "b", "m", "n", "k"]
    dims: tuple[Dim, ...]
    block: int
    is_scalar: bool = False

    @property
    def numel(self) -> Integer:
        return product(dim.size for dim in self.dims)

    @property
    def blocks(self) -> Integer:
        return ceiling_quotient(self.numel, self.block)

    @property
    def is_exact(self) -> bool:
        """Whether the blocks cover it without a rest, so that no mask is needed."""
        return self.numel != 0 and is_multiple(self.numel, self.block)

    @property
    def block_name(self) -> str:
        return f"{self.name.upper()}BLOCK"


@dataclass(frozen=True)
class LoopTile:
    """The tile of a kernel whose programs know nothing of each other: `axes`, slowest first, through all its loops."""

    axes: tuple[Axis, ...]
    num_warps: int

    @property
    def space(self) -> Space:
        """The loops in the order in which programs and lanes go through them."""
        x, r = ([axis for axis in self.axes if (axis.name == "r") == is_r] for is_r in (False, True))
        return Space(*(tuple(dim for axis in axes for dim in axis.dims) for axes in (x, r)))

    @property
    def programs(self) -> Integer:
        return product(axis.blocks for axis in self.axes if axis.name != "r")


@dataclass(frozen=True)
class Plan:
    """What the renderer needs: `program` over the loops of `axes`. `splits` programs share one row of `split`, `team`
    and `look_back` plans, each taking `chunk` of r (0: a block, or a share that the kernel computes, where r differs
    from call to call); how they do so is told by `team` and `chunks`, and those that look back are in groups of
    `team_size`. Where something is reduced across x there are `parts` programs, each of which takes `chunk` rows, in
    teams of `team_size` if that is not 0; `slices` times as many, if each takes only a slice of these rows. The
    `parts` of a `split` plan are its blocks of rows. Loops over what is loaded keep the loads of `stages` blocks
    under way, in shared memory, if that is more than one. A thread should do with `most_registers`, if that is not
    0, so that one more program runs at the same time. What it reads is evicted first
    if it `evicts_first`, so that the cache keeps what others left there, except what is `read_again` after it."""

    kind: Kind
    program: Program = field(hash=False)
    axes: tuple[Axis, ...]
    num_warps: int
    splits: int = 1
    chunk: int = 0
    parts: int = 0
    slices: int = 1
    team_size: int = 0
    stages: int = 1
    team: CooperativeReduction | None = None
    chunks: Chunks | None = None
    evicts_first: bool = False
    most_registers: int = 0
    read_again: frozenset[str] = frozenset()
    #: The loops along which neighbouring lanes lie; both, where each side of the tile is whole sectors of memory.
    lanes: Literal["x", "r", "both"] = "x"

    @property
    def is_cluster(self) -> bool:
        """Whether the programs of a team are started together, and reach each other's shared memory."""
        return self.team is not None and self.team.is_cluster

    @property
    def has_equal_shares(self) -> bool:
        """Whether the programs of a team share a row evenly, each less than a block."""
        return self.kind == "team" and 0 < self.chunk < self.axes[-1].block

    @property
    def share(self) -> str:
        """Points of r from one program of a team to the next, as text."""
        return str(self.chunk) if self.has_equal_shares else "RBLOCK"

    @property
    def teams(self) -> int:
        return -(-self.parts // self.team_size) if self.team_size else 0

    @property
    def takes_rows_in_turn(self) -> bool:
        """Whether a program goes through several blocks of rows, to gather what is reduced across them."""
        return self.parts > 0 and self.kind != "split"

    @property
    def grid(self) -> Integer:
        if self.takes_rows_in_turn:
            return self.parts * self.slices
        return product(axis.blocks for axis in self.axes if axis.name != "r") * self.splits

    @property
    def vectors(self) -> tuple[Axis, ...]:
        """The axes that values have, in order."""
        return tuple(axis for axis in self.axes if not axis.is_scalar)

    @property
    def needs_wide_offsets(self) -> bool:
        """Whether an offset or a padded count of elements goes beyond 31 bits, or may do so in another call."""
        if self.program.sizes:
            return True
        indices = [s.index for s in self.program.statements if s.index is not None]
        most = max((abs(known(bound)) for index in indices for bound in index.bounds), default=0)
        padded = [known(axis.blocks) * axis.block for axis in self.axes]
        everything = prod(known(axis.blocks) * axis.block for axis in self.axes if axis.name != "r")
        return max(most, *padded, known(self.grid), everything) >= 2**31


def warps_for(elements: int, per_thread: int, most: int = 32) -> int:
    return max(1, min(most, next_power_of_two(elements // (32 * per_thread))))
