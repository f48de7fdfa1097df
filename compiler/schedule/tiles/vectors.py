"""Which loads and stores are vectorised: 16 bytes of a thread by one instruction.

    load x[4096*x0 + x1]                                    four float32 at a time
    load x[4096*x0 + x1 + 1], x[3*x0], x[4095*x0 + x1]      one at a time: not where 16 bytes begin, or apart
    load x[4096*x0 + x1] where x1 < 4095                    one at a time: the mask differs between neighbours

A thread that takes several elements of what is moved one at a time has its neighbours as many elements away: of each
instruction's lines only a part is used, and of 16-byte vectors nothing is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.index import Dim
from compiler.ir.ranges import COMPARISONS
from compiler.schedule.program.program import Program, Statement, closure
from compiler.schedule.vectors import VECTOR_BYTES, begins_vectors, moves_vectors


@dataclass(frozen=True)
class Moves:
    """Of the accesses that vary along the loop that lanes run through in order: how many there are, how many move one
    element at a time, and how many of these are where an interpolation has them, and where memory tells; and of the
    latter those whose indices are computed from floats in memory, as samples of an image are."""

    all: int
    alone: int
    placed: int
    looked_up: int
    sampled: int


def moves_of(program: Program, dims: Sequence[Dim]) -> Moves:
    """How lanes move elements along the last of `dims`."""
    by_number = program.by_number
    everything = alone = placed = looked_up = sampled = 0
    for s in program.statements:
        if s.op not in ("load", "store") or s.index is None:
            continue
        if dims[-1] not in s.index.dims and not s.index.indirections:
            continue
        elements = max(VECTOR_BYTES // program.dtype_of(s).itemsize, 1)
        everything += 1
        if not _is_vectorised(s, by_number, dims, elements):
            makers = [by_number[n] for n in closure((atom.value for atom in s.index.indirections), by_number)]
            alone += 1
            is_looked_up = any(maker.op == "load" for maker in makers)
            is_computed = any(maker.dtype.is_floating_point for maker in makers)
            looked_up += is_looked_up
            sampled += is_looked_up and is_computed
            placed += not is_looked_up and is_computed
    return Moves(everything, alone, placed, looked_up, sampled)


def _is_vectorised(s: Statement, by_number: Mapping[int, Statement], dims: Sequence[Dim], elements: int) -> bool:
    assert s.index is not None
    masks = s.operands[1:] if s.op == "store" else s.operands
    return moves_vectors(s.index, dims, elements) and all(_is_alike(mask, by_number, dims, elements) for mask in masks)


def _is_alike(mask: int, by_number: Mapping[int, Statement], dims: Sequence[Dim], elements: int) -> bool:
    """Whether a mask holds for all or none of `elements` neighbours."""
    s = by_number[mask]
    if s.op in ("logical_and", "logical_or", "logical_not"):
        return all(_is_alike(operand, by_number, dims, elements) for operand in s.operands)
    indices = [by_number[number].index for number in closure([mask], by_number)]
    if not any(index is not None and dims[-1] in index.dims for index in indices):
        return True
    if s.op not in COMPARISONS:
        return False
    left, right = (by_number[operand] for operand in s.operands)
    if left.op != "index_value" or right.op != "constant" or left.index is None or not isinstance(right.value, int):
        return False
    return left.index.coefficient(dims[-1]) == 1 and begins_vectors(
        left.index - right.value - COMPARISONS[s.op], dims, elements
    )
