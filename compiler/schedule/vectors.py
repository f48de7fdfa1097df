"""Find the accesses that move vectors of sixteen bytes, by where they begin.

x[4096*x0 + x1]                     four float32, as a row is whole vectors
x[50257*x0 + x1], for x1 < 50257    eight bfloat16: all rows are one walk through memory
x[50264*x0 + x1], for x1 < 50257    one: neighbours go to the next row in the middle of a vector
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from compiler.ir.index import MOST_KEPT, Dim, Index
from compiler.ir.size import is_multiple, product

#: Bytes of a vector: the most that a thread moves by one instruction.
VECTOR_BYTES = 16


def begins_vectors(index: Index, dims: Sequence[Dim], elements: int) -> bool:
    """Whether the places of each `elements` neighbours begin at a multiple of that."""
    if not is_multiple(index.offset, elements):
        return False
    if is_walk(index, dims):
        return True
    others = [factor for atom, factor in index.terms if atom != dims[-1]]
    return is_multiple(dims[-1].size, elements) and all(is_multiple(factor, elements) for factor in others)


@lru_cache(maxsize=MOST_KEPT)
def moves_vectors(index: Index, dims: tuple[Dim, ...], elements: int) -> bool:
    """Whether each `elements` neighbours along all of `dims`, the last one innermost, are a vector."""
    is_whole = is_multiple(product(dim.size for dim in dims), elements)
    return is_whole and index.coefficient(dims[-1]) in (1, -1) and begins_vectors(index, dims, elements)


def is_walk(index: Index, dims: Sequence[Dim]) -> bool:
    """Whether it goes through all loops one after another."""
    step = index.coefficient(dims[-1])
    for dim in reversed(dims):
        if index.stride(dim) != step:
            return False
        step = step * dim.size
    return True
