"""From a fused group to its kernel program: its statements put together in sections. Printers name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from compiler.ir.size import SizeAtom, atoms_of, known
from compiler.schedule.group import Group, Space
from compiler.schedule.program.fast_math import fast_statements
from compiler.schedule.program.program import Program, Statement
from compiler.schedule.program.statements import sections_of, tail_of


def fast_program(
    group: Group,
    storage: Mapping[str, torch.dtype],
    is_persistent: bool = False,
    rewrite: Callable[[list[Statement]], list[Statement]] | None = None,
) -> Program:
    """The program of `group` with fast-math approximations; `storage` gives the dtype of every buffer that it touches.
    `rewrite` may put other statements, in an order in which each follows its operands, in the place of the group's
    own."""
    return program_of(group, fast_statements(group, rewrite), storage, is_persistent)


def program_of(
    group: Group, statements: Sequence[Statement], storage: Mapping[str, torch.dtype], is_persistent: bool = False
) -> Program:
    """The program of `group` that has these statements."""
    statements = list(statements)
    sections = sections_of(statements, is_persistent)
    tail = tail_of(statements)
    used = {s.number for section in sections for s in section.statements} | {s.number for s in tail}
    statements = [s for s in statements if s.number in used]
    reads = tuple(dict.fromkeys(s.buffer for s in statements if s.op == "load" and s.buffer is not None))
    writes = tuple(dict.fromkeys(s.buffer for s in statements if s.op == "store" and s.buffer is not None))
    touched = {name: storage[name] for name in (*reads, *writes)}
    sizes = _sizes(group.space, statements)
    return Program(
        group.name, group.space, sections, tuple(statements), tail, reads, writes, touched, sizes,
        _with_gaps(group), {m.name: m.node.part_of for m in group.members if m.node.part_of is not None},
    )  # fmt: skip


def _with_gaps(group: Group) -> frozenset[str]:
    """The buffers that the group makes, and does not merely update, whose elements are not all of their memory."""
    layouts = {member.name: member.node.layout for member in group.members if member.node.updates is None}
    fixed = {name: layout for name, layout in layouts.items() if isinstance(layout.storage_numel, int)}
    return frozenset(name for name, layout in fixed.items() if known(layout.storage_numel) > known(layout.numel))


def _sizes(space: Space, statements: list[Statement]) -> tuple[SizeAtom, ...]:
    """The sizes that loops and addresses depend on, by name."""
    found = {atom.name: atom for dim in space.dims for atom in atoms_of(dim.size)}
    for statement in statements:
        if statement.index is not None:
            found |= {atom.name: atom for size in statement.index.sizes for atom in atoms_of(size)}
    return tuple(found[name] for name in sorted(found))
