"""Uniform random numbers: the numbers 4n to 4n + 3 of a seed are the four words of draw n (Philox 4x32-10).

A draw is some sixty integer operations, more than most of what random numbers are used for, so one for each number
limits a dropout to a third of what memory allows. Where four lanes in a row want the four numbers of one draw, it is
made once for them; elsewhere each lane makes its own, and takes the word that is its.
"""

from __future__ import annotations

from compiler.codegen.triton.plan import Axis
from compiler.ir.index import Dim, Index
from compiler.ir.size import is_multiple

HELPERS: dict[str, str] = {
    "uniform": '''@triton.jit
def uniform(seed, position):
    """Uniform numbers in [0, 1); four in a row are the words of one draw."""
    a, b, c, d = tl.rand4x(seed, position // 4)
    word = position % 4
    return tl.where(word < 2, tl.where(word == 0, a, b), tl.where(word == 2, c, d))
''',
    "uniform_by_fours": '''@triton.jit
def uniform_by_fours(seed, position):
    """Uniform numbers in [0, 1), one draw for each four lanes: these stand in a row, the first at a multiple of 4."""
    rows = position.reshape(position.numel // 4, 4)
    a, b, c, d = tl.rand4x(seed, tl.min(rows, 1) // 4)
    return tl.join(tl.join(a, c), tl.join(b, d)).reshape(position.shape)
''',
}


def runs_by_fours(position: Index, axis: Axis) -> bool:
    """Whether lanes 4n to 4n + 3 along `axis`, the tile's last, are at positions 4m to 4m + 3."""
    if axis.block % 4 or not axis.dims or position.indirections:
        return False
    fastest = axis.dims[-1]
    if len(axis.dims) > 1 and not is_multiple(fastest.size, 4):
        return False
    others = [step for atom, step in position.terms if atom != fastest]
    is_plain = all(isinstance(atom, Dim) for atom, _ in position.terms)
    return is_plain and position.stride(fastest) == 1 and all(is_multiple(n, 4) for n in (*others, position.offset))
