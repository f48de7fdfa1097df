"""What a tile goes by of a group: which memory it touches, and how long its text is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import torch

from compiler.ir.body import Body
from compiler.ir.index import Index
from compiler.ir.lazy import lazy
from compiler.schedule.group import Group, Space
from compiler.schedule.program.fast_math import fast_statements
from compiler.schedule.program.program import EFFECTS, Level, Program, Statement, closure
from compiler.schedule.program.statements import inlined, without_known_conditions
from compiler.schedule.tiles.lengths import OF_ACCESS, length_of

#: Places that are loaded and stored, the dtype of what is there, and how many buffers are touched so.
PlainTouches = frozenset[tuple[tuple[Index, torch.dtype], int]]


def touching_program(group: Group, storage: Mapping[str, torch.dtype]) -> Program:
    """The statements of a group that touch memory, and those that tell where and whether they do; no sections. Where
    every place is told by the loops alone, nothing has to be put together for that."""
    touches = plain_touches(group, storage)
    return whole_program(group, storage) if touches is None else plain_program(group.space, touches)


def plain_touches(group: Group, storage: Mapping[str, torch.dtype]) -> PlainTouches | None:
    """What a group touches; None where a mask or a computed place takes part."""
    if not all(_is_plain(member.body) for member in group.members):
        return None
    produced, stored = group.produced, group.stored
    found = {access for member in group.members for access in member.body.reads if access.buffer not in produced}
    found |= {access for member in group.members for access in member.body.writes if access.buffer in stored}
    return frozenset(Counter([(access.index, storage[access.buffer]) for access in found]).items())


def plain_program(space: Space, touches: PlainTouches) -> Program:
    """Loads in the place of all that a group touches."""
    r_dims, storage, statements = frozenset(space.r), dict[str, torch.dtype](), list[Statement]()
    for (index, dtype), count in touches:
        level: Level = "x" if index.dims.isdisjoint(r_dims) else "r"
        for _ in range(count):
            number = len(statements)
            storage[str(number)] = dtype
            statements.append(Statement(number, "", "load", (), dtype, level, (), str(number), index))
    return Program("", space, (), tuple(statements), (), (), (), storage)


@lru_cache(maxsize=1 << 14)
def _is_plain(body: Body) -> bool:
    accesses = (*body.reads, *body.writes)
    return not any(access.is_masked or access.is_update or access.index.indirections for access in accesses)


def whole_program(group: Group, storage: Mapping[str, torch.dtype]) -> Program:
    """All statements of a group, as it has them; no sections."""
    return _program(group, without_known_conditions(inlined(group, storage)), storage)


def _program(group: Group, statements: list[Statement], storage: Mapping[str, torch.dtype]) -> Program:
    """Those of the statements that something is done for."""
    used = closure((s.number for s in statements if s.op in EFFECTS), {s.number: s for s in statements})
    kept = tuple(s for s in statements if s.number in used)
    return Program(group.name, group.space, (), kept, (), (), (), storage)


class Text:
    """How long the text of a group without reduction loops is for one element, in instructions. That takes all its
    statements with fast-math approximations, so it is looked at only where bodies as they stand are as long."""

    def __init__(self, group: Group, storage: Mapping[str, torch.dtype]) -> None:
        self.group, self.storage = group, storage

    def is_longer_than(self, length: int) -> bool:
        return self._most > length and self._length > length

    @lazy
    def _most(self) -> int:
        produced, passed = self.group.produced, 0
        for member in self.group.members:
            # Within the group a value is passed on in a register.
            passed += sum(count for buffer, count in member.body.loads.items() if buffer in produced)
            passed += member.name not in self.group.stored
        return sum(_length_of_body(member.body) for member in self.group.members) - OF_ACCESS * passed

    @lazy
    def _length(self) -> int:
        return length_of(_program(self.group, fast_statements(self.group, self.storage), self.storage).statements)


@lru_cache(maxsize=1 << 14)
def _length_of_body(body: Body) -> int:
    return length_of(body.instructions)
