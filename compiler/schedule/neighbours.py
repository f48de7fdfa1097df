"""How an index changes between neighbouring points of a loop, which one thread takes.

x // 1024       is one for them
x % 1024        goes on with them
16 * (x % 256)  goes on by 16
"""

from __future__ import annotations

from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.size import Integer, hint

#: Elements of one loop that a thread takes at least, where there are so many.
ELEMENTS_OF_A_THREAD = 8


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
