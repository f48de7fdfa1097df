"""The order of statements: loads before arithmetic, and some loads before programs wait for each other.

    x = load                x = load
    a = sin x        ->     y = load
    y = load                a = sin x
    b = cos y               b = cos y

The assembler keeps loads behind the branches that stand before them, and a sine has one, for large arguments: as
written on the left, the second load waits for all of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.schedule.program.program import Section, Statement
from compiler.schedule.tiles.plan import Axis

#: Values of one tensor that a program may hold while it waits for others: those of some channels, not of a row.
_FEW = 4


def loads_first(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with the loads, and what their places need, in front; each part keeps its order. Where something
    is checked or scattered, the loads after it may depend on it, and all stays as it is."""
    if any(s.op == "check" or s.is_scatter for s in statements):
        return list(statements)
    by_number = {s.number: s for s in statements}
    early: set[int] = set()
    open_ = [s.number for s in statements if s.op == "load"]
    while open_:
        number = open_.pop()
        if number in by_number and number not in early:
            early.add(number)
            open_ += by_number[number].needs
    if any(by_number[number].op in ("reduce", "scan", "across") for number in early):
        return list(statements)
    return sorted(statements, key=lambda s: s.number not in early)


def loads_before_waiting(sections: Iterable[Section], axis: Axis, share: int) -> tuple[Statement, ...]:
    """The loads of `sections` along the reduction loops of `axis` that have few values in a program's `share` of it, as
    the weights of channels, at places that follow from the loops alone: what a program loads after it has waited for
    others, it waits for once more."""
    loads = (s for section in sections if section.level == "r" for s in section.statements if s.op == "load")
    return tuple(s for s in loads if not s.needs and share <= _FEW * _run(s, axis))


def _run(statement: Statement, axis: Axis) -> int:
    """Points in a row along `axis` that load the same place."""
    run = 1
    for dim in reversed(axis.dims):
        if statement.index is None or dim in statement.index.dims or not isinstance(dim.size, int):
            break
        run *= dim.size
    return run
