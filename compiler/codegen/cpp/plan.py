"""The plan of a CPU kernel: the order of its loops, their blocks, and what runs in parallel.

One of four shapes, the first three chosen by the loop variable along which memory is contiguous:

    pointwise   for x ...:  vector loop over the contiguous x, or where that has two to four points, over the next one
    rows        for x ...:  passes whose vector loop runs over the contiguous r (softmax of the last dimension)
    columns     for blocks of the contiguous x:  passes of  for r ...:  vector loop over the block (a sum over rows, and
                rows too short for vectors of their own, which are transposed first)
    scatter     for x ... along which stores never meet:  for the other x ... in order:  vector loop, if there is one

A value of a pass is computed again by the next pass, except that in `rows` a value that costs more than to read it
(an exponential) is kept where it stays in the cache (see `kept.py`).

What is reduced across x as well (see `across.py`) makes `rows` of fixed parts of the outermost loop, or `columns` where
each lane of a vector can gather for itself: sums of all channels beside a norm or a softmax of them take 40 times as
long in `rows`.

Scans go step by step along r: in `rows` without vectors, in `columns` with a vector of running values.
Long reductions are summed in chunks whose sums are added at the end: that keeps rounding errors small, and it is what
runs in parallel where there are too few rows for that. The chunks do not depend on the number of threads, so neither
does the result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from compiler.codegen.cpp.collisions import keeps_apart
from compiler.codegen.cpp.kept import cost, kept_values
from compiler.codegen.cpp.pieces import Piece, pieces_of
from compiler.codegen.cpp.staging import RANDOM_BLOCK, WIDE_BLOCK, can_be_drawn, can_be_transposed, wide_accesses
from compiler.ir.index import Dim, points_of
from compiler.ir.size import Integer, hint, text_of
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.tiles.passes import KEPT_COST
from compiler.schedule.tiles.walk import with_last

Shape = Literal["pointwise", "rows", "columns", "scatter"]

#: Below this many simple operations a second thread costs more than it brings (ATen's grain size, in elements).
PARALLEL_WORK = 32768
#: How many independent pieces of work are enough to keep any number of threads busy.
ENOUGH_PIECES = 16
#: Columns that one block of a `columns` kernel holds: accumulators of a few KB, and at least whole cache lines.
COLUMN_BLOCK = 256
#: Edge of the square that a transposing kernel works through, so that both sides stay in the cache (and far columns are
#: read in runs of several cache lines), and the shortest side of what it is for.
TRANSPOSE_BLOCK, TRANSPOSE_LEAST = 64, 16
#: The longest loop that is unrolled inside of a vector loop, whose points it puts beside each other.
UNROLLED = 4
#: Columns that one thread of a scatter takes: whole cache lines, so that threads do not share them.
SCATTER_BLOCK = 64
#: Elements of one chunk of a long reduction: of a row, of which a vector takes 16 at once, and of a column.
ROW_CHUNK, COLUMN_CHUNK = 4096, 128
#: Chunks whose results are kept side by side when they are computed in parallel: of rows, and of blocks of columns.
ROW_CHUNKS, COLUMN_CHUNKS = 4096, 64
#: Pieces of a long reduction whose length differs from call to call.
SHARES = 64
#: Points of the shortest loop that has vectors.
SHORTEST_VECTORS = 16
#: Bytes of the longest row of which vectors take many at once (rows of 6 to 120 elements were timed), and where each
#: element costs much, which what is left beside whole vectors would cost one by one.
SHORT_ROW, COSTLY_SHORT_ROW = 127, 320
#: Parts of the rows across which something is gathered.
ACROSS_PARTS = 64
#: What the lanes of a vector over columns can gather each for itself, to be joined after it.
SUMMED_IN_LANES = ("sum", "prod")


@dataclass(frozen=True)
class Plan:
    """How `program` is laid out as loops. `outer` and `r_loops` are from the outside in; `inner` is the vectorised x
    loop of `pointwise` and `columns`, `block` its size in blocks (0: in one piece). `across` is the second variable of
    a transposing kernel's squares, `in_order` are the loops of a scatter that no thread shares. `chunk` is how many
    points of `r_loops[0]` one chunk has (0: not cut, unless into as many `shares` of a size that the kernel computes,
    where the length differs from call to call); `parts` are those of `outer[0]` that gather across x. `operations` is
    the work of the whole kernel. `unrolled` is a short loop inside of the vector loop of `pointwise`, `pieces` are what
    that loop is cut into, if it is. `tile` is how many points of the innermost reduction loop of `columns` are
    transposed at a time, of what runs along it (0: nothing does)."""

    program: Program
    shape: Shape
    outer: tuple[Dim, ...]
    inner: Dim | None
    r_loops: tuple[Dim, ...]
    block: int = 0
    across: Dim | None = None
    chunk: int = 0
    parallel: Literal["no", "x", "chunks", "parts"] = "no"
    kept: Mapping[int, Statement | None] = field(default_factory=dict)
    in_order: tuple[Dim, ...] = ()
    shares: int = 0
    parts: int = 0
    operations: Integer = 0
    unrolled: Dim | None = None
    pieces: tuple[Piece, ...] = ()
    tile: int = 0

    @property
    def is_cut(self) -> bool:
        return bool(self.chunk or self.shares)

    @property
    def has_short_rows(self) -> bool:
        """Whether one tile holds all that is reduced, for all passes."""
        return bool(self.tile) and len(self.r_loops) == 1 and self.tile == self.r_loops[0].size

    @property
    def is_chunk_one_point(self) -> bool:
        """Whether a chunk is one point of the outermost of several reduction loops: it needs no loop over that one, and
        with one of a single turn GCC 12 does not turn the loop inside into vectors."""
        return self.chunk == 1 and len(self.r_loops) > 1

    @property
    def chunks(self) -> str:
        """How many chunks there are, as text."""
        size = self.r_loops[0].size
        if self.shares or not isinstance(size, int):
            return str(self.shares) if self.shares else f"({text_of(size + (self.chunk - 1))}) / {self.chunk}"
        return str(-(-size // self.chunk) if self.chunk else 1)

    @property
    def worth_threads(self) -> str:
        """The clause by which a kernel of differing sizes uses threads only where there is enough to do."""
        return "" if isinstance(self.operations, int) else f" if({text_of(self.operations)} >= {PARALLEL_WORK})"


def make_plan(program: Program, written_over: Collection[str]) -> Plan:
    """The plan of a looped program, of which the buffers of `written_over` share their memory with another one."""
    x_loops = tuple(dim for dim in program.space.x if dim.size != 1)
    r_loops = tuple(dim for dim in program.space.r if dim.size != 1)
    operations = _work(program)
    # What differs from call to call may be much in another one; the kernel decides then (see `worth_threads`).
    work = operations if isinstance(operations, int) else max(hint(operations), PARALLEL_WORK)
    plan = _plan(program, x_loops, r_loops, work, written_over)
    return replace(plan, operations=operations)


def _plan(
    program: Program, x_loops: tuple[Dim, ...], r_loops: tuple[Dim, ...], work: int, written_over: Collection[str]
) -> Plan:
    if program.across:
        return _across_plan(program, x_loops, r_loops, work, written_over)
    if not program.passes:
        return (_scatter_plan if program.scatters else _pointwise_plan)(program, x_loops, work)
    inner_x, inner_r = _inner_of_columns(program, x_loops, r_loops), _most_contiguous(r_loops, program, "r")
    if inner_x is None and _are_short_rows(program, x_loops, r_loops, written_over):
        inner_x = x_loops[-1]
    if inner_r is not None and not program.scans:  # a scan is one in the order of its loops
        r_loops = with_last(r_loops, inner_r)
    if inner_x is not None:
        plan = _columns_plan(program, x_loops, inner_x, r_loops, written_over)
    else:
        plan = Plan(program, "rows", x_loops, None, r_loops)
    return _cut_reduction(plan, work, written_over)


def _inner_of_columns(program: Program, x_loops: tuple[Dim, ...], r_loops: tuple[Dim, ...]) -> Dim | None:
    """The x loop along which more is contiguous than along any loop of the reduction, if there is one; as much is
    enough where that loop is too short for vectors, as of a window."""
    inner_x, inner_r = _most_contiguous(x_loops, program, "r"), _most_contiguous(r_loops, program, "r")
    if program.scans and r_loops:
        inner_r = r_loops[-1]
    if inner_x is None or inner_r is None:
        return None
    along_x, along_r = _contiguity(inner_x, program, "r"), _contiguity(inner_r, program, "r")
    is_shorter = hint(inner_r.size) < min(hint(inner_x.size), SHORTEST_VECTORS)
    return inner_x if along_x > along_r or (along_x == along_r and is_shorter) else None


def _columns_plan(
    program: Program, x_loops: tuple[Dim, ...], inner: Dim, r_loops: tuple[Dim, ...], written_over: Collection[str]
) -> Plan:
    outer = tuple(dim for dim in x_loops if dim != inner)
    plan = Plan(program, "columns", outer, inner, r_loops, block=_block_of(inner.size))
    if not any(can_be_transposed(program, s, inner, r_loops[-1], written_over) for s in _accesses_of_passes(program)):
        return plan
    size = r_loops[-1].size
    height = min(size, TRANSPOSE_BLOCK) if isinstance(size, int) else TRANSPOSE_BLOCK
    return replace(plan, block=min(plan.block, TRANSPOSE_BLOCK), tile=height)


def _are_short_rows(
    program: Program, x_loops: tuple[Dim, ...], r_loops: tuple[Dim, ...], written_over: Collection[str]
) -> bool:
    """Whether rows lie one after the other that are too short to be worth vectors of their own, which end in a sum over
    the lanes: a vector then takes an element each of so many rows, transposed where they are contiguous."""
    if len(r_loops) != 1 or not x_loops or program.scans or program.scatters:
        return False
    (row,), rows, accesses = r_loops, x_loops[-1], _accesses_of_passes(program)
    transposed = [s for s in accesses if can_be_transposed(program, s, rows, row, written_over)]
    widest = max((program.dtype_of(s).itemsize for s in transposed), default=0)
    is_costly = any(cost(s) > KEPT_COST for section in program.passes for s in section.statements)
    longest = COSTLY_SHORT_ROW if is_costly else SHORT_ROW
    if not widest or not isinstance(row.size, int) or row.size * widest > longest:
        return False
    others = [s for s in accesses if s not in transposed]
    is_worth_it = hint(rows.size) >= TRANSPOSE_BLOCK
    return is_worth_it and all(s.index is not None and s.index.stride(rows) in (0, 1) for s in others)


def _block_of(size: Integer) -> int:
    return min(COLUMN_BLOCK, max(size, 1)) if isinstance(size, int) else COLUMN_BLOCK


def _pointwise_plan(program: Program, x_loops: tuple[Dim, ...], work: int) -> Plan:
    parallel: Literal["no", "x"] = "x" if work >= PARALLEL_WORK else "no"
    inner = _most_contiguous(x_loops, program, "x")
    if inner is None:
        return Plan(program, "pointwise", (), None, ())
    outer = tuple(dim for dim in x_loops if dim != inner)
    plan = Plan(program, "pointwise", outer, inner, (), parallel=parallel)
    longer = _vectors_around(program, inner, outer)
    if longer is not None:
        inner, outer = longer, tuple(dim for dim in outer if dim != longer)
        plan = replace(plan, outer=outer, inner=inner, unrolled=plan.inner)
    crossed = (dim for dim in outer if hint(dim.size) >= TRANSPOSE_LEAST and _is_crossed(program, inner, dim))
    across = next(crossed, None)
    if across is not None and longer is None and hint(inner.size) >= TRANSPOSE_LEAST:
        rest = tuple(dim for dim in outer if dim != across)
        return replace(plan, outer=rest, across=across, block=TRANSPOSE_BLOCK)
    if hint(inner.size) > RANDOM_BLOCK and any(can_be_drawn(s, inner, program.by_number) for s in program.statements):
        return replace(plan, block=RANDOM_BLOCK)
    if longer is None and len(pieces := pieces_of(program.statements, inner)) > 1:
        plan = replace(plan, pieces=pieces)
    elif longer is None and hint(inner.size) > WIDE_BLOCK and wide_accesses(program, program.statements, inner):
        return replace(plan, block=WIDE_BLOCK)
    if parallel == "x" and (outer or plan.pieces) and points_of(outer) < ENOUGH_PIECES and hint(inner.size) > 4096:
        return replace(plan, block=4096)
    return plan


def _vectors_around(program: Program, short: Dim, outer: tuple[Dim, ...]) -> Dim | None:
    """The loop to vectorise along where the contiguous one is too short for vectors (real and imaginary parts, the two
    numbers of a byte): that whose points are stored side by side when the short one is unrolled in it. Images whose
    three channels lie side by side, less the means of these, take 5 times as long without."""
    if not isinstance(short.size, int) or short.size > UNROLLED:
        return None
    stores = [s.index for s in program.statements if s.op == "store" and s.index is not None]
    longer = (dim for dim in reversed(outer) if hint(dim.size) >= 2 * UNROLLED)
    found = (dim for dim in longer if all((i.stride(short), i.stride(dim)) == (1, short.size) for i in stores))
    return next(found, None) if stores else None


def _scatter_plan(program: Program, x_loops: tuple[Dim, ...], work: int) -> Plan:
    """Threads and vectors along the loops that keep the stores apart; the others inside of those, in their order."""
    apart = tuple(dim for dim in x_loops if keeps_apart(dim, program.scatters))
    in_order = tuple(dim for dim in x_loops if dim not in apart)
    fast = [dim for dim in apart if all(s.index is not None and s.index.stride(dim) == 1 for s in program.scatters)]
    inner = _most_contiguous(tuple(fast), program, "x")
    outer = tuple(dim for dim in apart if dim != inner)
    plan = Plan(program, "scatter", outer, inner, (), in_order=in_order)
    if work < PARALLEL_WORK or not apart:
        return plan
    if inner is not None and points_of(outer) < ENOUGH_PIECES and hint(inner.size) >= 2 * SCATTER_BLOCK:
        plan = replace(plan, block=SCATTER_BLOCK)
    return replace(plan, parallel="x") if outer or plan.block else plan


def _is_crossed(program: Program, inner: Dim, other: Dim) -> bool:
    """Whether some access runs along `other` where the vector loop runs along `inner`."""
    strides = [(s.index.stride(inner), s.index.stride(other)) for s in _accesses(program.statements) if s.index]
    return any(along == 1 and across not in (0, 1) for across, along in strides)


def _cut_reduction(plan: Plan, work: int, written_over: Collection[str]) -> Plan:
    """Chunks of long reductions, what runs in parallel, and what is kept between passes."""
    shared = (*plan.outer, *([plan.inner] if plan.inner is not None else []))
    stays_apart = all(keeps_apart(dim, plan.program.scatters) for dim in shared)
    if not plan.r_loops:
        return replace(plan, parallel="x" if work >= PARALLEL_WORK and plan.outer and stays_apart else "no")
    inner_points = points_of(plan.r_loops[1:]) or 1
    blocks = -(-hint(plan.inner.size) // plan.block) if plan.inner is not None and plan.block else 1
    pieces = points_of(plan.outer) * blocks
    if not all(isinstance(dim.size, int) for dim in plan.outer):
        pieces = max(pieces, ENOUGH_PIECES)  # few rows in the first call are no sign of few rows
    wanted, most = (ROW_CHUNK, ROW_CHUNKS) if plan.shape == "rows" else (COLUMN_CHUNK, COLUMN_CHUNKS)
    longest, is_fixed = hint(plan.r_loops[0].size), isinstance(plan.r_loops[0].size, int)
    is_parallel = work >= PARALLEL_WORK and stays_apart
    can_chunk = not plan.program.scatters and not plan.program.scans
    in_chunks = is_parallel and can_chunk and pieces < ENOUGH_PIECES and longest > 1 and not plan.has_short_rows
    if in_chunks:
        wanted = max(min(wanted, longest * inner_points // ENOUGH_PIECES), -(-longest // most) * inner_points)
    chunk = max(1, wanted // inner_points)
    has_sums = any(section.reductions for section in plan.program.sections)
    if (chunk >= longest and is_fixed) or (plan.program.scans and not has_sums):
        chunk = 0
    parallel: Literal["no", "x", "chunks"] = "no"
    if is_parallel:
        parallel = "chunks" if chunk and in_chunks else "x" if pieces > 1 else "no"
    if parallel == "chunks" and not is_fixed:
        return replace(plan, chunk=0, shares=SHARES, parallel=parallel)
    has_arrays = plan.shape == "rows" and parallel != "chunks"

    def is_usable(store: Statement) -> bool:
        if not plan.tile or plan.has_short_rows or plan.inner is None:
            return True
        # a tile is emptied before the next pass begins
        return not can_be_transposed(plan.program, store, plan.inner, plan.r_loops[-1], written_over)

    kept = kept_values(plan.program, written_over, has_arrays, max(plan.block, 1), is_usable)
    return replace(plan, chunk=chunk, parallel=parallel, kept=kept)


def _across_plan(
    program: Program, x_loops: tuple[Dim, ...], r_loops: tuple[Dim, ...], work: int, written_over: Collection[str]
) -> Plan:
    """Rows, or columns, in parts. A row is still summed in chunks."""
    inner_x = _inner_of_columns(program, x_loops, r_loops)
    if inner_x is not None and all(s.value in SUMMED_IN_LANES for s in program.across):
        plan = _columns_plan(program, x_loops, inner_x, r_loops, written_over)
        return _in_parts(_cut_reduction(plan, 0, written_over), (*plan.outer, inner_x)[0], work)
    inner = _most_contiguous(r_loops, program, "r")
    if inner is not None and not program.scans:
        r_loops = with_last(r_loops, inner)
    chunk = max(1, ROW_CHUNK // max(points_of(r_loops[1:]), 1)) if r_loops else 0
    if not r_loops or chunk >= hint(r_loops[0].size) or program.scans:
        chunk = 0
    plan = Plan(program, "rows", x_loops, None, r_loops, chunk=chunk, kept=kept_values(program, written_over))
    return _in_parts(plan, x_loops[0], work)


def _in_parts(plan: Plan, cut: Dim, work: int) -> Plan:
    """The plan with parts of the loop `cut`, as many as there may be threads."""
    is_parallel = work >= PARALLEL_WORK and hint(cut.size) > 1
    parts = min(hint(cut.size), ACROSS_PARTS) if is_parallel else 1
    return replace(plan, parallel="parts" if is_parallel else "no", parts=parts)


def _work(program: Program) -> Integer:
    """Simple operations of the whole kernel, a coarse count."""
    total: Integer = 0
    for section in program.sections:
        points = program.space.numel * (program.space.reduction_numel if section.level == "r" else 1)
        total = total + points * (1 + sum(cost(s) for s in section.statements) // 8)
    return total


def _accesses_of_passes(program: Program) -> list[Statement]:
    return [s for section in program.passes for s in _accesses(section.statements)]


def _accesses(statements: tuple[Statement, ...]) -> list[Statement]:
    return [s for s in statements if s.op in ("load", "store")]


def _contiguity(dim: Dim, program: Program, level: str) -> int:
    """How many bytes are walked contiguously along `dim`: a vector that is read again for each row counts once, a
    store twice, and what is read at an index that was loaded counts for each point."""
    points, total = points_of(program.space.dims), 0
    for section in program.sections:
        for statement in _accesses(section.statements) if section.level == level else ():
            assert statement.index is not None
            if statement.index.stride(dim) == 1:
                elements = points if statement.index.indirections else statement.index.points
                weight = 2 if statement.op == "store" else 1
                total += elements * program.dtype_of(statement).itemsize * weight
    return total


def _most_contiguous(dims: tuple[Dim, ...], program: Program, level: str) -> Dim | None:
    """The variable to vectorise along; the last one among equals, and a long one rather than one of a few points."""
    if not dims:
        return None
    return max(reversed(dims), key=lambda dim: (_contiguity(dim, program, level), min(hint(dim.size), 8)))
