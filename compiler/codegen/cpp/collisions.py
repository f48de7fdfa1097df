"""Find the loops along which the stores of a scatter never collide.

    for x0: for x1 < 64:  out[64*index[x0] + x1] += v        two points meet only where x1 is the same

Loops that keep stores apart may run in parallel and in vectors; the others run in order, on one thread each, so that
sums come out the same in every run and the last of several values stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.size import Undecided, is_multiple
from compiler.schedule.program.program import Statement


def keeps_apart(dim: Dim, stores: Iterable[Statement]) -> bool:
    """Whether points that differ in `dim` store at different elements, whatever is loaded."""
    try:
        return all(store.index is not None and _decides(store.index, dim) for store in stores if store.is_scatter)
    except Undecided:
        return False


def _decides(index: Index, dim: Dim) -> bool:
    """Whether the offset tells `dim`: in a number system whose digits are the terms, `dim` is a digit of its own.

    The smaller terms together stay below one step of `dim`, the larger ones are multiples of all its steps."""
    step = abs(index.coefficient(dim))
    rest = [(atom, factor) for atom, factor in index.terms if atom != dim]
    if step == 0 or any(isinstance(atom, FloorDiv | Mod) and dim in atom.numerator.dims for atom, _ in rest):
        return False
    smaller = tuple((atom, factor) for atom, factor in rest if abs(factor) < step)
    low, high = Index(0, smaller).bounds
    return high - low < step and all(is_multiple(factor, step * dim.size) for _, factor in rest if abs(factor) >= step)
