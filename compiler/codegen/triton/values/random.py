"""Uniform random numbers: the numbers 4n to 4n + 3 of a seed are the four words of draw n (Philox 4x32).

A draw is some forty to sixty integer operations, more than most of what random numbers are used for, so one for each
number limits a dropout to a third of what memory allows. Where four lanes in a row want the four numbers of one draw,
it is made once for them, at the position of the first of the four; elsewhere each lane makes its own, and takes the
word that is its. Numbers that are only compared (`rand_compared`) share a word by twos, so one draw serves eight lanes
in a row:

    draw n             a        b        c        d
    numbers 8n ...     a a'     b b'     c c'     d d'        x' is x rotated by 16 bits

A number is 31 bits of its word, its magnitude as a signed number, as a float32 and scaled; of a shared word it is the
upper 31 bits. Shared words are of seven rounds, and all others of ten: see `compiler.ir.interpret.ROUNDS`.
"""

from __future__ import annotations

from compiler.ir.index import Dim, Index
from compiler.ir.size import is_multiple
from compiler.schedule.tiles.plan import Axis

#: What draws each kind of random number, one lane at a time.
GENERATORS = {
    "rand": "uniform",
    "rand_compared": "shared",
    "randn": "tl.randn",
}
#: For how many lanes in a row one draw can be made, the most first, and how their generator's name ends.
TOGETHER = {"rand": (4,), "rand_compared": (8, 4)}
SUFFIXES = {4: "_by_fours", 8: "_by_eights"}

HELPERS: dict[str, str] = {
    "draw": '''@triton.jit
def draw(seed, number, rounds: tl.constexpr):
    """The four words of draw `number` (Philox 4x32). Both halves of a product are made by one instruction."""
    key, other_key = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    none = tl.zeros_like(number).to(tl.uint32)
    a, b, c, d = number.to(tl.uint32), none, none, none
    if number.dtype.primitive_bitwidth > 32:
        b = (number >> 32).to(tl.uint32)
    for _ in tl.static_range(rounds):
        first, second = a.to(tl.uint64) * 0xD2511F53, c.to(tl.uint64) * 0xCD9E8D57
        a, b = (second >> 32).to(tl.uint32) ^ b ^ key, second.to(tl.uint32)
        c, d = (first >> 32).to(tl.uint32) ^ d ^ other_key, first.to(tl.uint32)
        key += tl.full([], 0x9E3779B9, tl.uint32)
        other_key += tl.full([], 0xBB67AE85, tl.uint32)
    return a, b, c, d
''',
    "drawn_word": '''@triton.jit
def drawn_word(seed, position, rounds: tl.constexpr):
    """One word for each lane; four in a row are those of one draw."""
    a, b, c, d = draw(seed, position // 4, rounds)
    word = position % 4
    return tl.where(word < 2, tl.where(word == 0, a, b), tl.where(word == 2, c, d))
''',
    "uniform": '''@triton.jit
def uniform(seed, position):
    """Uniform numbers in [0, 1); four in a row are the words of one draw."""
    return tl.uint_to_uniform_float(drawn_word(seed, position, 10))
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
    a, b, c, d = draw(seed, position // 4, 10)
    return tl.uint_to_uniform_float(in_a_row(a, b, c, d))
''',
    "rotated": '''@triton.jit
def rotated(word):
    """The halves of a word in the other order."""
    return (word << 16) | (word >> 16)
''',
    "shared_word": '''@triton.jit
def shared_word(seed, position):
    """The words of numbers that are only compared; two in a row are one word and the same word rotated."""
    word = drawn_word(seed, position // 2, 7)
    return tl.where(position % 2 == 0, word, rotated(word))
''',
    "shared_word_by_fours": '''@triton.jit
def shared_word_by_fours(seed, position):
    """The shared words at `position`, which is a multiple of 4, and at the three after it: two words of a draw."""
    a, b, c, d = draw(seed, position // 8, 7)
    is_first = position % 8 == 0
    first, second = tl.where(is_first, a, c), tl.where(is_first, b, d)
    return in_a_row(first, rotated(first), second, rotated(second))
''',
    "shared_word_by_eights": '''@triton.jit
def shared_word_by_eights(seed, position):
    """The shared words at `position`, which is a multiple of 8, and at the seven after it: those of one draw."""
    a, b, c, d = draw(seed, position // 8, 7)
    words = in_a_row(a, b, c, d)
    lanes: tl.constexpr = 2 * words.shape[len(words.shape) - 1]
    rows: tl.constexpr = 2 * words.numel // lanes
    joined = tl.join(words, rotated(words))
    return joined.reshape(lanes) if len(words.shape) == 1 else joined.reshape(rows, lanes)
''',
    "shared": '''@triton.jit
def shared(seed, position):
    """Uniform numbers in [0, 1) that are only compared."""
    return tl.uint_to_uniform_float(shared_word(seed, position) >> 1)
''',
    "shared_by_fours": '''@triton.jit
def shared_by_fours(seed, position):
    """The same at `position`, which is a multiple of 4, and at the three after it."""
    return tl.uint_to_uniform_float(shared_word_by_fours(seed, position) >> 1)
''',
    "shared_by_eights": '''@triton.jit
def shared_by_eights(seed, position):
    """The same at `position`, which is a multiple of 8, and at the seven after it."""
    return tl.uint_to_uniform_float(shared_word_by_eights(seed, position) >> 1)
''',
}


def drawn_together(op: str, position: Index, axis: Axis) -> int:
    """For how many lanes in a row along `axis`, the tile's last, one draw is made; 0 where each lane makes its own."""
    return next((many for many in TOGETHER.get(op, ()) if _runs_by(many, position, axis)), 0)


def _runs_by(many: int, position: Index, axis: Axis) -> bool:
    """Whether lanes `many` * n and those after it are at positions `many` * m and those after it."""
    if axis.block % many or not axis.dims or position.indirections:
        return False
    fastest = axis.dims[-1]
    if len(axis.dims) > 1 and not is_multiple(fastest.size, many):
        return False
    others = [step for atom, step in position.terms if atom != fastest]
    is_plain = all(isinstance(atom, Dim) for atom, _ in position.terms)
    return is_plain and position.stride(fastest) == 1 and all(is_multiple(n, many) for n in (*others, position.offset))
