"""How values are loaded: by wider accesses, sooner, or evicted first.

Triton is told how many neighbouring lanes share a computed index:

    x2 = (x_index // 64) % 56;  source = floor(x2 * 0.5)              every 64 lanes have one source
    load image + 64 * source + x_index % 64                           16 bytes at a time, if Triton knows that

It follows this through sums and products of whole numbers, but not through floats, by which interpolations compute
their indices, nor through absolute values, by which images are mirrored: without a word it loads element by element.

Loads stand before arithmetic, and some before programs wait for each other:

    x = load                x = load
    a = sin x        ->     y = load
    y = load                a = sin x
    b = cos y               b = cos y

The assembler keeps loads behind the branches that stand before them, and a sine has one, for large arguments: as
written on the left, the second load waits for all of the first.

What a kernel reads once leaves the cache before what others have there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from math import prod

from compiler.codegen.triton.values.random import GENERATORS
from compiler.ir.index import Dim
from compiler.ir.size import known
from compiler.schedule.program.program import Program, Section, Statement, closure
from compiler.schedule.tiles.plan import Axis, PersistentPlan, Plan

#: What is told by more than the point of the loops.
_FROM_ELSEWHERE = frozenset(("load", *GENERATORS, "reduce", "scan", "across", "field"))
#: Warps of a program from which on loads with evict-first gain: with 8 they do by 2 %.
_WARPS_EVICTING_FIRST = 8
#: Values of one tensor that a program may hold while it waits for others: those of some channels, not of a row.
_FEW = 4


def computed_indices(program: Program) -> frozenset[int]:
    """The statements that are parts of an address and follow from the loops alone."""
    by_number = program.by_number
    numbers = {i.value for s in program.statements if s.index is not None for i in s.index.indirections}
    return frozenset(
        number
        for number in numbers
        if all(by_number[other].op not in _FROM_ELSEWHERE for other in closure([number], by_number))
    )


def constancy(number: int, program: Program, vectors: Sequence[Axis], axes: frozenset[str]) -> list[int]:
    """How many neighbouring lanes have one value, along each of `vectors`; it varies along `axes`."""
    by_number = program.by_number
    indices = [index for other in closure([number], by_number) if (index := by_number[other].index) is not None]
    dims = frozenset(dim for index in indices for dim in index.dims)
    return [_along(axis, dims) if axis.name in axes else 1 for axis in vectors]


def _along(axis: Axis, dims: frozenset[Dim]) -> int:
    """The largest power of two that divides the number of lanes in a row for which none of `dims` changes."""
    lanes = _run(axis, dims)
    return min(lanes & -lanes, axis.block)


def _run(axis: Axis, dims: frozenset[Dim]) -> int:
    """Points in a row along `axis` for which none of `dims` changes."""
    outside = takewhile(lambda dim: dim not in dims and isinstance(dim.size, int), reversed(axis.dims))
    return prod(known(dim.size) for dim in outside)


def loads_first(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with the loads, and what their indices need, in front; each part keeps its order. Where something
    is checked or scattered, the loads after it may depend on it, and all stays as it is."""
    if any(s.op == "check" or s.is_scatter for s in statements):
        return list(statements)
    by_number = {s.number: s for s in statements}
    early: set[int] = set()
    open_ = [s.number for s in statements if s.op == "load"]
    while open_:
        number = open_.pop()
        if number in by_number and number not in early:
            early.add(number)
            open_ += by_number[number].needs
    if any(by_number[number].op in ("reduce", "scan", "across") for number in early):
        return list(statements)
    return sorted(statements, key=lambda s: s.number not in early)


def loads_before_waiting(sections: Iterable[Section], axis: Axis, share: int) -> tuple[Statement, ...]:
    """The loads of `sections` along the reduction loops of `axis` that have few values in a program's `share` of it, as
    the weights of channels, at indices that follow from the loops alone: what a program loads after it has waited for
    others, it waits for once more."""
    loads = (s for section in sections if section.level == "r" for s in section.statements if s.op == "load")
    return tuple(s for s in loads if s.index and not s.needs and share <= _FEW * _run(axis, s.index.dims))


def evicted_first(plan: Plan) -> frozenset[int]:
    """The loads of each element that are evicted first. What is read again stays there, but for that of long rows. On
    an H200 means of rows and what is scaled by them, 103 MB, take 92 us so, 95 if the rows stay."""
    if not plan.evicts_first and not _has_long_rows(plan):
        return frozenset()
    stays = plan.read_again if plan.evicts_first else frozenset[str]()
    loop_dims = {dim for axis in plan.axes for dim in axis.dims if dim.size != 1}
    loads = [s for s in plan.program.statements if s.op == "load" and s.buffer not in stays]
    return frozenset(s.number for s in loads if s.index is not None and loop_dims <= s.index.dims)


def _has_long_rows(plan: Plan) -> bool:
    """Whether long rows are read once and come to a few values each: what the cache holds of others can then stay.
    On an H200 the variances of rows of 4,096 float32 take 67 us so, 72 without."""
    is_row = isinstance(plan, PersistentPlan) and plan.axes[0].is_scalar and plan.parts is None
    stores = [s for s in plan.program.statements if s.op == "store"]
    return is_row and plan.num_warps >= _WARPS_EVICTING_FIRST and all(s.level == "x" for s in stores)
