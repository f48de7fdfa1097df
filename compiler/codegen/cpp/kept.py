"""Values of one pass that later passes read from an array instead of computing them again.

    softmax:  exp = exp(x - amax);  div_ptr[...] = exp;  sum += exp        into the output's own row,
              exp = div_ptr[...];   div_ptr[...] = exp / sum               where the result takes its place

Kept are the costly ones (an exponential), and what a scan gives, beside which no sum has vectors: in the row of an
output of their type that is made of them last, and else in an array of the thread, on the heap where sizes are open.
Either has to stay in the cache, by the first call's sizes. A scan that is kept has a pass of its own before the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from compiler.ir.ops import NAMED, POINTWISE, RANDOM, cost_of
from compiler.ir.size import hint
from compiler.schedule.program.program import EFFECTS, Program, Section, Statement, closure
from compiler.schedule.tiles.passes import KEPT_COST, KEPT_IN_ARRAYS

#: Bytes of a row that may be kept in an output: with as much that is read, it fits into the second-level cache of a
#: server.
KEPT_IN_OUTPUT = 1 << 19


def kept_values(
    program: Program,
    written_over: Collection[str],
    has_arrays: bool = True,
    columns: int = 1,
    is_usable: Callable[[Statement], bool] = lambda store: True,
) -> dict[int, Statement | None]:
    """By statement, the store in whose place its value is kept, None for an array. Outputs of `written_over` share
    their memory with something else, and stores that are not `is_usable` keep nothing; without `has_arrays` (one row
    for several threads, a block of several `columns`) there are outputs alone."""
    numel, passes, by_number = hint(program.space.reduction_numel), program.passes, program.by_number

    def stores(needed: Mapping[int, int]) -> dict[int, Statement | None]:
        kept: dict[int, Statement | None] = {}
        for number, last in needed.items():
            statement = by_number[number]
            taken = [store for store in kept.values() if store is not None]
            later = [s for section in passes[last:] for s in section.statements if s not in taken]
            stores = [s for s in later if _can_hold(s, statement, program, written_over) and is_usable(s)]
            fits = statement.dtype.itemsize * numel * columns <= KEPT_IN_OUTPUT
            kept[number] = stores[0] if stores and fits else None
        in_arrays = [by_number[number] for number, store in kept.items() if store is None]
        if not has_arrays or sum(s.dtype.itemsize for s in in_arrays) * numel > KEPT_IN_ARRAYS:
            return {number: store for number, store in kept.items() if store is not None}
        return kept

    computed_again: set[int] = set()
    while True:
        needed = _needed_again(passes, computed_again)
        kept = stores(needed)
        if kept.keys() == needed.keys():
            return kept
        computed_again |= needed.keys() - kept.keys()  # which needs others longer


def _needed_again(passes: list[Section], computed_again: Collection[int]) -> dict[int, int]:
    """The costly statements and scans of one pass that a later one needs, and the position of the last of these. Those
    `computed_again` in each pass are not kept."""
    found: dict[int, int] = {}
    made: set[int] = set()
    for position, section in enumerate(passes):
        due = due_statements(section, made)
        found |= {s.number: position for s in due if s.number in made}
        made |= {s.number for s in due if s.op == "scan" or cost(s) >= KEPT_COST}.difference(computed_again)
    return dict(sorted(found.items()))


def sections_of(program: Program, kept: Collection[int]) -> list[Section]:
    """Those of a program by rows: a scan that is kept and would stand beside a reduction comes before that."""
    found: list[Section] = []
    due = {scan.number for scan in program.scans}.intersection(kept)
    for section in program.sections:
        scans = [scan for scan in section.scans if scan.number in due]
        due -= {scan.number for scan in scans}
        for scan in scans if section.reductions else ():
            own = {scan.number, *closure(scan.operands, program.by_number)}
            found.append(Section("r", tuple(s for s in section.statements if s.number in own)))
        found.append(section)
    return found


def due_statements(section: Section, kept: Collection[int]) -> list[Statement]:
    """What a pass has to do, with the `kept` at hand: nothing that only leads to those. It may end in a scan."""
    needed = {s.number for s in section.statements[-1:] if s.op == "scan"}
    for statement in reversed(section.statements):
        if statement.op in (*EFFECTS, "reduce", "across") or statement.number in needed:
            needed.add(statement.number)
            if statement.number not in kept:
                needed |= statement.needs
    return [s for s in section.statements if s.number in needed]


def _can_hold(store: Statement, value: Statement, program: Program, written_over: Collection[str]) -> bool:
    """Whether a value may stand where something that is made of it will be stored."""
    buffer = store.buffer
    if store.op != "store" or store.is_scatter or len(store.operands) > 1 or store.index is None or buffer is None:
        return False
    if buffer in written_over or buffer in program.reads or program.storage[buffer] != value.dtype:
        return False
    if sum(s.op == "store" and s.buffer == buffer for s in program.statements) > 1 or not store.index.is_affine:
        return False
    loops = [dim for dim in program.space.dims if dim.size != 1]
    is_of_each = all(store.index.stride(dim) not in (None, 0) for dim in loops)
    return is_of_each and value.number in closure(store.operands, program.by_number)


def cost(statement: Statement) -> int:
    if statement.op in RANDOM:
        return 30
    return cost_of(statement.op) if statement.op in POINTWISE or statement.op in NAMED else 0
