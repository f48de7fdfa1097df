"""Uniform random numbers: the numbers 4n to 4n + 3 of a seed are the four words of draw n (Philox 4x32-10).

A draw is some sixty integer operations, more than most of what random numbers are used for, so one for each number
limits a dropout to a third of what memory allows. Where four lanes in a row want the four numbers of one draw, it is
made once for them, at the position of the first of the four; elsewhere each lane makes its own, and takes the word that
is its.

A number is 31 bits of its word, its magnitude as a signed number, as a float32 and scaled. A word whose number is only
compared with constants stays one, whose bits are compared with the whole numbers that the constants stand for:

    uniform(seed, position) > 0.1    ->    reaches(uniform_word(seed, position), 214748368)
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
    "uniform_word": '''@triton.jit
def uniform_word(seed, position):
    """The words of which uniform numbers are made; four in a row are those of one draw."""
    a, b, c, d = tl.randint4x(seed, position // 4)
    word = position % 4
    return tl.where(word < 2, tl.where(word == 0, a, b), tl.where(word == 2, c, d)).to(tl.uint32, bitcast=True)
''',
    "reaches": '''@triton.jit
def reaches(word, least: tl.constexpr):
    """Whether the magnitude of a word as a signed number, x or -1 - x, is at least so much; in one comparison, since
    words of which it is not are 2 * least in a row."""
    return word + tl.full([], least, tl.uint32) >= tl.full([], 2 * least, tl.uint32)
''',
    "in_a_row": '''@triton.jit
def in_a_row(a, b, c, d):
    """Blocks of the same shape as one of four times as many lanes: a, b, c, d of the first lane, of the second, ..."""
    lanes: tl.constexpr = 4 * a.shape[len(a.shape) - 1]
    rows: tl.constexpr = 4 * a.numel // lanes
    joined = tl.join(tl.join(a, c), tl.join(b, d))
    return joined.reshape(lanes) if len(a.shape) == 1 else joined.reshape(rows, lanes)
''',
    "uniform_by_fours": '''@triton.jit
def uniform_by_fours(seed, position):
    """Uniform numbers in [0, 1) at `position`, which is a multiple of 4, and at the three after it."""
    a, b, c, d = tl.rand4x(seed, position // 4)
    return in_a_row(a, b, c, d)
''',
    "uniform_word_by_fours": '''@triton.jit
def uniform_word_by_fours(seed, position):
    """The words of the uniform numbers at `position`, which is a multiple of 4, and at the three after it."""
    a, b, c, d = tl.randint4x(seed, position // 4)
    return in_a_row(a, b, c, d).to(tl.uint32, bitcast=True)
''',
}
#: What a helper calls besides.
CALLS: dict[str, tuple[str, ...]] = {
    "uniform_by_fours": ("in_a_row",),
    "uniform_word_by_fours": ("in_a_row",),
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
