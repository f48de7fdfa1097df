"""Classify a refusal: its exact reason, from its record.

The rules refuse as soon as they know that two units cannot become one, in the broadest terms. Which of several causes
it was (read backwards, transposed, shifted, at computed indices; a call on another device) is told here, from the index
expressions, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from compiler.decisions import Refuse
from compiler.ir.index import Dim, FloorDiv, Index, Mod
from compiler.ir.nodes import ExternNode
from compiler.ir.size import Integer, hint
from compiler.schedule.group import Group
from compiler.schedule.units import Unit

#: Orders of more loops than this are not tried.
MOST_LOOPS = 4


def exact_reason(refusal: Refuse, one: Unit, two: Unit, shared: tuple[str, ...]) -> str:
    """The id of the reason that says most about the refusal."""
    if refusal.reason == "kind.extern":
        return _reason_of_call([unit for unit in (one, two) if isinstance(unit, ExternNode)])
    written, read = refusal.numbers.get("written"), refusal.numbers.get("read")
    if refusal.reason == "index.different_positions" and isinstance(written, Index) and isinstance(read, Index):
        return _how_they_differ(written, read)
    if refusal.reason in ("index.no_common_loops", "shape.numel") and _is_indirect(one, two, shared):
        return "index.indirect"
    return refusal.reason


def _reason_of_call(calls: list[ExternNode]) -> str:
    if any(call.crosses_devices for call in calls):
        return "kind.other_device"
    return "kind.fallback" if any(call.is_fallback for call in calls) else "kind.extern"


def _how_they_differ(written: Index, read: Index) -> str:
    if read.indirections or written.indirections:
        return "index.indirect"
    if not (read - written).terms:
        return "index.shifted"
    if forwards(read) == written:
        return "index.reversed"
    if written in set(reordered(read, read.dims)) or (written.is_affine and _exchanges_digits(read, written)):
        return "index.transposed"
    return "index.different_positions"


def _exchanges_digits(read: Index, written: Index) -> bool:
    """Whether the read takes the loops apart and puts them together in another order: 16 * (x0 % 16) + x0 // 16. A
    digit that is counted from elsewhere, (x0 + 3) % 16, is turned round and not exchanged."""
    numerators = [atom.numerator for atom, _ in read.terms if isinstance(atom, FloorDiv | Mod)]
    if not numerators or read.bounds != written.bounds or any(index.offset != 0 for index in (read, *numerators)):
        return False
    reached: Integer = 1
    for atom, step in sorted(read.terms, key=lambda term: hint(term[1])):
        if step != reached:
            return False
        reached = step * (Index.of(atom).bounds[1] + 1)
    return True


def forwards(index: Index) -> Index:
    """The index with every loop that it runs through backwards turned round."""
    backwards = {dim for dim in index.dims if isinstance(c := index.coefficient(dim), int) and c < 0}
    return index.substitute({dim: Index.number(dim.size - 1) - Index.of(dim) for dim in backwards})


def reordered(index: Index, dims: Iterable[Dim]) -> Iterable[Index]:
    """The index with its loops in every other order."""
    ordered = sorted(dims, key=lambda dim: dim.name)
    if 1 < len(ordered) <= MOST_LOOPS:
        for order in permutations(ordered):
            if order != tuple(ordered):
                yield index.substitute({dim: Index.of(other) for dim, other in zip(ordered, order, strict=True)})


def _is_indirect(one: Unit, two: Unit, shared: tuple[str, ...]) -> bool:
    """Whether one of the two touches all that they share at indices that are known only when it runs."""
    groups = [unit for unit in (one, two) if isinstance(unit, Group)]
    return bool(shared) and any(
        all(access.index.indirections for buffer in shared for access in group.accesses.get(buffer, ()))
        for group in groups
    )
