"""The order of statements: loads before arithmetic.

    x = load                x = load
    a = sin x        ->     y = load
    y = load                a = sin x
    b = cos y               b = cos y

The assembler keeps loads behind the branches that stand before them, and a sine has one, for large arguments: as
written on the left, the second load waits for all of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.schedule.program.program import Statement


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
