"""The smallest part of a program that still goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.programs.program import Program
from bench.programs.worlds import Rejected, run


def shrink(program: Program, is_wrong: Callable[[Program], bool], most_tries: int = 400) -> Program:
    """Leave out results, then statements, as long as what is left is a program and wrong."""
    tries = 0

    def is_still_wrong(candidate: Program) -> bool:
        nonlocal tries
        tries += 1
        if tries > most_tries:
            return False
        try:
            worlds = [run(call) for call in candidate.calls]
            if any(name not in worlds[0].eager for name in candidate.results):
                return False
        except Rejected:
            return False
        return is_wrong(candidate)

    program = _with_fewer_results(program, is_still_wrong)
    program = _without_unread(program, is_still_wrong)
    smaller = _with_fewer_statements(program, is_still_wrong)
    while len(smaller.statements) < len(program.statements):
        program, smaller = smaller, _with_fewer_statements(smaller, is_still_wrong)
    return smaller


def _with_fewer_results(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    for name in program.results:
        alone = replace(program, results=(name,))
        if len(program.results) > 1 and is_wrong(alone):
            return alone
    return program


def _without_unread(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    """At once: every statement that no result depends on."""
    needed, kept = set(program.results), []
    for statement in reversed(program.statements):
        if statement.is_write or not needed.isdisjoint(statement.targets):
            needed |= {*statement.operands, *statement.targets}
            kept.append(statement)
    candidate = replace(program, statements=tuple(kept[::-1]))
    return candidate if len(kept) < len(program.statements) and is_wrong(candidate) else program


def _with_fewer_statements(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    size = max(1, len(program.statements) // 2)
    while size:
        for start in range(len(program.statements) - size, -1, -size):
            left = program.statements[:start] + program.statements[start + size :]
            candidate = replace(program, statements=left)
            if is_wrong(candidate):
                program = candidate
        size //= 2
    return program
