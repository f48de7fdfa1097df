"""Loops cut where a condition on their variable changes.

    for x1 < 1024:  cat[x1] = x1 < 1 ? a[x1] : b[x1 - 1]

    for x1 < 1:  cat[x1] = a[x1];    for 1 <= x1 < 1024:  cat[x1] = b[x1 - 1]

What is padded, shifted or concatenated needs no masks inside of the pieces, and its vectors are loaded as they are.
Without pieces, poolings with padding take 4 to 23 times as long by one thread, rolls 2.5, and joins 1.45.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.ir.choices import known_values
from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.index_formulas import formula_of_step
from compiler.ir.ops import RANDOM
from compiler.ir.ranges import COMPARISONS
from compiler.schedule.program.program import EFFECTS, Statement, closure
from compiler.schedule.program.statements import without_known_conditions

#: More pieces than this are more text than they are worth.
MOST_PIECES = 5

#: What a loop is there for.
_ROOTS = (*EFFECTS, "reduce", "across")


@dataclass(frozen=True)
class Piece:
    """The points of a loop from `start` to `end`, and what is left to do there."""

    start: int
    end: int
    statements: tuple[Statement, ...]


def pieces_of(statements: Sequence[Statement], dim: Dim, own: Collection[int] | None = None) -> tuple[Piece, ...]:
    """The pieces of a loop over `dim`; one where nothing changes on the way, or too often. The loop does the statements
    whose numbers are `own` (all of them unless given) and knows what the others have made."""
    own = {s.number for s in statements} if own is None else own
    done = tuple(s for s in statements if s.number in own)
    whole = (Piece(0, dim.size, done),) if isinstance(dim.size, int) else ()
    if not whole or any(s.op in RANDOM for s in done):
        return whole
    steps = _numbered_in_order(statements, {s.number: position for position, s in enumerate(statements)})
    of_loop = [step for step, s in zip(steps, statements, strict=True) if s.number in own]
    found = {cut for step in of_loop if step.op in COMPARISONS for cut in _cuts(step, steps, dim)}
    found |= {cut for step in of_loop if step.index is not None for cut in _wraps(step.index, dim)}
    if not (cuts := _few(sorted(found), whole[0].end)):
        return whole
    numbers = {position: s.number for position, s in enumerate(statements)}
    ends = [*cuts, whole[0].end]
    roots = {step.number for step in of_loop if step.op in _ROOTS}
    return tuple(
        Piece(start, end, tuple(s for s in _numbered_in_order(left, numbers) if s.number in own))
        for start, end in zip([0, *cuts], ends, strict=True)
        for left in [_within(steps, roots, dim, start, end)]
    )


def _few(cuts: list[int], end: int) -> list[int]:
    """The cuts, or of too many those before and behind the longest stretch without any, if that is most of the loop."""
    if len(cuts) < MOST_PIECES:
        return cuts
    stretches = zip([0, *cuts], [*cuts, end], strict=True)
    first, last = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    return [cut for cut in (first, last) if 0 < cut < end] if 2 * (last - first) > end else []


def _numbered_in_order(statements: Sequence[Statement], numbers: Mapping[int, int]) -> list[Statement]:
    return [
        replace(
            s,
            number=numbers[s.number],
            operands=tuple(numbers[operand] for operand in s.operands),
            index=None if s.index is None else s.index.renumber(numbers),
        )
        for s in statements
    ]


def _cuts(comparison: Statement, steps: Sequence[Statement], dim: Dim) -> tuple[int, ...]:
    """The first point of the loop where the outcome is another one than before."""
    left, right = (formula_of_step(operand, steps) for operand in comparison.operands)
    difference = None if left is None or right is None else left - right
    if difference is None or difference.dims != {dim} or not difference.is_affine or len(difference.terms) != 1:
        return ()
    factor, offset, least = difference.coefficient(dim), difference.offset, COMPARISONS[comparison.op]
    assert isinstance(dim.size, int)
    if not isinstance(factor, int) or not isinstance(offset, int):
        return ()
    # factor * x + offset >= least holds from here on, or up to here.
    cut = -((offset - least) // factor) if factor > 0 else (offset - least) // -factor + 1
    return (cut,) if 0 < cut < dim.size else ()


def _wraps(index: Index, dim: Dim) -> Iterable[int]:
    """Where the quotient of the variable and a constant changes: what is rolled is read from its start again there."""
    for atom, _ in index.terms:
        if not isinstance(atom, FloorDiv | Mod) or atom.numerator - atom.numerator.offset != Index.of(dim):
            continue
        offset, divisor, size = atom.numerator.offset, atom.divisor, dim.size
        if isinstance(offset, int) and isinstance(divisor, int) and isinstance(size, int):
            yield from range((-offset) % divisor or divisor, size, divisor)


def _within(steps: Sequence[Statement], roots: Collection[int], dim: Dim, start: int, end: int) -> list[Statement]:
    """What leads to the `roots` of a piece, with the outcomes of conditions that hold all over it or nowhere in it."""
    piece = Dim(f"{dim.name}_from_{start}", end - start)
    near, back = {dim: Index.of(piece) + start}, {piece: Index.of(dim) - start}
    simpler = without_known_conditions([_moved(step, near) for step in steps])
    outcomes = known_values(simpler).outcomes
    simpler = [_zero(s) if _is_never_loaded(s, outcomes) else s for s in simpler]
    needed = closure(roots, {s.number: s for s in simpler})
    return [_moved(s, back) for s in simpler if s.number in needed]


def _is_never_loaded(statement: Statement, outcomes: Mapping[int, bool]) -> bool:
    return statement.op == "load" and any(outcomes.get(mask) is False for mask in statement.operands)


def _zero(load: Statement) -> Statement:
    return replace(load, op="constant", operands=(), buffer=None, index=None, value=0)


def _moved(statement: Statement, values: Mapping[Dim, Index]) -> Statement:
    return statement if statement.index is None else replace(statement, index=statement.index.substitute(values))
