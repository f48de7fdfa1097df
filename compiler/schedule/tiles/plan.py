"""The tile of a kernel: which loops it spans, how large its blocks are, how many warps run it.

`Plan` is a closed union, of which `choose` takes one for a group and a device; `match` tells them apart:

    PointwisePlan        x: blocks along all loops together; reductions over windows too, written out (`over_windows`).
                         y, x: where one side walks memory along another loop than the other side (a transpose)
    PersistentPlan       x, r: all of r in registers, every value loaded and computed once
    LoopedPlan           x, r: blocks of r, one loop for each pass
    SplitPlan            looped over a part of r; the last program of a row to finish combines the parts
    CooperativePlan      a part of r in registers; the programs of a row exchange what they reduce and go on
    LookBackPlan         a chunk of r in registers; each program of a scan waits for what those before it come to
    ProductPlan          two of m, n, k: the tile of an operand or of the result of a matrix product

What is reduced across x as well makes a program of a persistent or looped plan take several blocks of x; the last
program to finish joins what they gathered (see `triton/reductions/across.py`). Of a split plan, the last program of
each row leaves what the last of all joins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from math import prod
from typing import ClassVar, Literal, TypeVar

from compiler.ir.index import Dim
from compiler.ir.size import Integer, ceiling_quotient, is_multiple, known, next_power_of_two, product
from compiler.schedule.group import Space
from compiler.schedule.program.program import Program
from compiler.schedule.tiles.cooperative import CooperativeReduction
from compiler.schedule.tiles.look_back import Chunks

P = TypeVar("P", bound="KernelPlan")

#: Bytes of one tensor that a thread moves: two 16-byte accesses in flight hide the latency of one.
BYTES_PER_THREAD = 32


@dataclass(frozen=True)
class Axis:
    """One axis of the tile: `dims` (slowest first) run through together in blocks of `block`.

    A scalar axis has one element a program and no axis in the shape of values."""

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
class Parts:
    """How programs gather what is reduced across x: `count` of them, each of which takes `rows` rows, in teams of
    `team_size` if that is not 0."""

    count: int
    rows: int
    team_size: int = 0

    @property
    def teams(self) -> int:
        return -(-self.count // self.team_size) if self.team_size else 0


@dataclass(frozen=True)
class KernelPlan:
    """What all plans have: `program` over the loops of `axes`, run by programs of `num_warps` warps. A thread should do
    with `most_registers`, if that is not 0, so that one more program runs at the same time. What it reads is evicted
    first if it `evicts_first`, so that the cache keeps what others left there, except what is `read_again` after it."""

    #: How reports call it.
    label: ClassVar[Literal["pointwise", "persistent", "looped", "split", "team", "look_back", "product"]]

    program: Program = field(hash=False)
    axes: tuple[Axis, ...]
    num_warps: int
    evicts_first: bool = field(default=False, kw_only=True)
    most_registers: int = field(default=0, kw_only=True)
    read_again: frozenset[str] = field(default=frozenset(), kw_only=True)
    #: The loops along which neighbouring lanes lie; both, where each side of the tile is whole sectors of memory.
    lanes: Literal["x", "r", "both"] = field(default="x", kw_only=True)

    @property
    def splits(self) -> int:
        """Programs that share one row."""
        return 1

    @property
    def rows_in_turn(self) -> Parts | None:
        """How a program goes through several blocks of rows, to gather what is reduced across them."""
        return None

    @property
    def grid(self) -> Integer:
        if self.rows_in_turn is not None:
            return self.rows_in_turn.count
        return product(axis.blocks for axis in self.axes if axis.name != "r") * self.splits

    def _as(self, other: Callable[..., P]) -> P:
        """A plan of another kind with what all plans have."""
        return other(**{one.name: getattr(self, one.name) for one in fields(KernelPlan)})

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


@dataclass(frozen=True)
class PointwisePlan(KernelPlan):
    label = "pointwise"


@dataclass(frozen=True)
class ProductPlan(KernelPlan):
    label = "product"


@dataclass(frozen=True)
class WholeRows(KernelPlan):
    """Programs that have rows to themselves, with what they gather across them. Loops over what is loaded keep the
    loads of `stages` blocks under way, in shared memory, if that is more than one."""

    parts: Parts | None = None
    stages: int = 1

    @property
    def rows_in_turn(self) -> Parts | None:
        return self.parts


@dataclass(frozen=True)
class PersistentPlan(WholeRows):
    label = "persistent"


@dataclass(frozen=True)
class LoopedPlan(WholeRows):
    label = "looped"

    def shared(self, shares: int, chunk: int = 0) -> SplitPlan:
        """The same with each row shared among so many programs."""
        assert self.parts is None and self.stages == 1
        return self._as(partial(SplitPlan, shares=shares, chunk=chunk))


@dataclass(frozen=True)
class SplitPlan(KernelPlan):
    """So many programs share one row, each taking `chunk` of r; 0 is a share that the kernel computes, where r differs
    from call to call. `parts` are its blocks of rows, where something is reduced across them."""

    label = "split"

    shares: int
    chunk: int
    parts: Parts | None = None

    @property
    def splits(self) -> int:
        return self.shares

    @property
    def alone(self) -> LoopedPlan:
        """The same with a program to each row."""
        return self._as(LoopedPlan)


@dataclass(frozen=True)
class CooperativePlan(KernelPlan):
    """The programs of `team` share one row."""

    label = "team"

    team: CooperativeReduction

    @property
    def splits(self) -> int:
        return self.team.size

    @property
    def has_equal_shares(self) -> bool:
        """Whether the programs share a row evenly, each less than a block."""
        return self.team.share < self.axes[-1].block

    @property
    def share(self) -> str:
        """Points of r from one program to the next, as text."""
        return str(self.team.share) if self.has_equal_shares else "RBLOCK"


@dataclass(frozen=True)
class LookBackPlan(KernelPlan):
    """Programs that have one of `chunks` of a row each."""

    label = "look_back"

    chunks: Chunks

    @property
    def splits(self) -> int:
        return self.chunks.count


#: Plans by which several programs have a row, each of them the part `part`.
SharedRowPlan = SplitPlan | CooperativePlan | LookBackPlan

Plan = PointwisePlan | PersistentPlan | LoopedPlan | SplitPlan | CooperativePlan | LookBackPlan | ProductPlan


def row_axes(program: Program, x_block: int, r_block: int) -> tuple[Axis, Axis]:
    """The axes of a tile of so many rows, or columns, and so many points of each."""
    return Axis("x", program.space.x, x_block, is_scalar=x_block == 1), Axis("r", program.space.r, r_block)


def warps_for(elements: int, per_thread: int, most: int = 32) -> int:
    return min(most, next_power_of_two(elements // (32 * per_thread)))
