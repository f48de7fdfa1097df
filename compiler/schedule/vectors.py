"""Find the accesses that move vectors of sixteen bytes, by where they begin, and how an index changes between
neighbouring points of a loop, which one thread takes.

x[4096*x0 + x1]                     four float32, as a row is whole vectors
x[50257*x0 + x1], for x1 < 50257    eight bfloat16: all rows are one walk through memory
x[50264*x0 + x1], for x1 < 50257    one: neighbours go to the next row in the middle of a vector
x // 1024       is one for neighbours
x % 1024        goes on with them
16 * (x % 256)  goes on by 16
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from compiler.ir.index import MOST_KEPT, Dim, FloorDiv, Index, Mod
from compiler.ir.size import Integer, hint, is_multiple, product

#: Bytes of a vector: the most that a thread moves by one instruction.
VECTOR_BYTES = 16
#: Elements of one loop that a thread takes at least, where there are so many.
ELEMENTS_OF_A_THREAD = 8


def begins_vectors(index: Index, dims: Sequence[Dim], elements: int) -> bool:
    """Whether the offsets of each `elements` neighbours begin at a multiple of that."""
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


def changes_along(index: Index, loop: Dim) -> bool:
    """Whether an index takes several values at neighbours along `loop` that a thread takes."""
    return any(is_moved(atom, step, loop) for atom, step in index.terms)


def is_moved(atom: object, step: Integer, loop: Dim) -> bool:
    """Whether a term of an index takes several values at these neighbours."""
    if isinstance(atom, Mod):
        return any(is_moved(inner, factor, loop) for inner, factor in atom.numerator.terms)
    if isinstance(atom, FloorDiv):
        moved = [hint(factor) for inner, factor in atom.numerator.terms if is_moved(inner, factor, loop)]
        return any(ELEMENTS_OF_A_THREAD * abs(factor) > hint(atom.divisor) for factor in moved)
    return atom == loop and hint(step) != 0
