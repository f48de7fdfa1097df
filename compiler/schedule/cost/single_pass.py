"""Find the sums of a group that need not wait for another reduction, and what each pass then reads.

A softmax needs the largest value of a row before it can add up exponentials, a variance the mean before it can add up
squares. `schedule/program/single_pass.py` has the formulas by which the second sum is made in the pass of the first.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from compiler.ir.body import Access
from compiler.ir.index import Index
from compiler.ir.nodes import Layout
from compiler.schedule.group import Group
from compiler.schedule.program.program import Statement, closure
from compiler.schedule.program.single_pass import in_single_pass, relative_sums
from compiler.schedule.program.statements import inlined, passes_before, sections_of, without_known_conditions


def storage_of(group: Group, layouts: Mapping[str, Layout]) -> dict[str, torch.dtype]:
    """The dtype of each buffer that the group touches or makes."""
    accesses = [a for member in group.members for a in (*member.body.reads, *member.body.writes)]
    return {access.buffer: layouts[access.buffer].dtype for access in accesses}


def relative_members(group: Group, layouts: Mapping[str, Layout]) -> dict[str, str]:
    """The members whose sums need not wait, each with the member whose result it is relative to."""
    if sum(member.body.reduction is not None for member in group.members) < 2 or group.has_scan:
        return {}
    statements = inlined(group, storage_of(group, layouts))
    by_number = {s.number: s for s in statements}
    found: dict[str, str] = {}
    for one in relative_sums(statements):
        if one.kind == "squares" and not isinstance(group.space.reduction_numel, int):
            continue  # how many there are is a constant of the kernel
        waits_for = max(n for n in closure((one.about,), by_number) if by_number[n].op == "reduce")
        reader, writer = (_member(by_number[number], group) for number in (one.number, waits_for))
        found[reader] = writer
    return found


def _member(statement: Statement, group: Group) -> str:
    return next(node for node in statement.nodes if node in group.produced)


def passes_in_blocks(group: Group, layouts: Mapping[str, Layout]) -> tuple[frozenset[Access], ...]:
    """What each pass of a kernel that takes its rows block by block loads."""
    rewrite = in_single_pass(group.single_pass, group.space.reduction_numel)
    statements = rewrite(without_known_conditions(inlined(group, storage_of(group, layouts))))
    return tuple(
        frozenset(Access(s.buffer or "", s.index or Index.number(0)) for s in section.statements if s.op == "load")
        for section in sections_of(statements, passes_before(statements), is_persistent=False)
        if section.level == "r"
    )
