"""Tell Triton how many neighbouring lanes share a computed index.

    x2 = (x_index // 64) % 56;  place = floor(x2 * 0.5)              every 64 lanes have one place
    load image + 64 * place + x_index % 64                           16 bytes at a time, if Triton knows that

Triton follows this through sums and products of whole numbers, but not through floats, by which interpolations compute
their places, nor through absolute values, by which images are mirrored: without a word it loads element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.codegen.triton.values.random import GENERATORS
from compiler.ir.index import Dim
from compiler.schedule.program.program import Program, closure
from compiler.schedule.tiles.plan import Axis

#: What is told by more than the point of the loops.
_FROM_ELSEWHERE = frozenset(("load", *GENERATORS, "reduce", "scan", "across", "field"))


def computed_indices(program: Program) -> frozenset[int]:
    """The statements that are parts of an address and follow from the loops alone."""
    by_number = {s.number: s for s in program.statements}
    places = {i.value for s in program.statements if s.index is not None for i in s.index.indirections}
    return frozenset(
        number
        for number in places
        if all(by_number[other].op not in _FROM_ELSEWHERE for other in closure([number], by_number))
    )


def constancy(number: int, program: Program, vectors: Sequence[Axis], axes: frozenset[str]) -> list[int]:
    """How many neighbouring lanes have one value, along each of `vectors`; it varies along `axes`."""
    by_number = {s.number: s for s in program.statements}
    indices = [index for other in closure([number], by_number) if (index := by_number[other].index) is not None]
    dims = frozenset(dim for index in indices for dim in index.dims)
    return [_along(axis, dims) if axis.name in axes else 1 for axis in vectors]


def _along(axis: Axis, dims: frozenset[Dim]) -> int:
    """The largest power of two that divides the number of lanes in a row for which none of `dims` changes."""
    lanes = 1
    for dim in reversed(axis.dims):
        if dim in dims or not isinstance(dim.size, int):
            break
        lanes *= dim.size
    return min(lanes & -lanes, axis.block)
