"""The kernel program: a fused group as phases over one tile, between the scheduler and the printers.

All bodies of a group become one list of statements; a store that feeds a load becomes a value. The statements fall
into sections that alternate between two levels:

    x level   once for each point of the group's independent loops
    r level   for each point of the reduction loops besides; a section at this level is one pass over `r`

A reduction ends a pass: its result is an x-level value that the next sections may use. Softmax is three passes:

    x: (nothing)
    r: x = load;                         maximum = reduce max x
    r: x = load; e = exp(x - maximum);   total = reduce sum e
    r: x = load; e = exp(x - maximum);   store e / total

In a *looped* program each pass loads and computes again what it needs, since registers do not outlive a loop. In a
*persistent* one the whole of `r` is held in registers, so every statement stands once and later passes only go on.
A scan is a value of the r level that depends on the points before: each pass that needs it carries it along again.
What a group reduces across x (see `Member.is_across`) is gathered by statements `across` among the others, for each r
or for all of them; the `tail` computes with the results, once, when every point of x is done.
Triton and C++ printers render the same program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import torch

from compiler.ir.body import operands_of
from compiler.ir.index import Index
from compiler.ir.lazy import lazy
from compiler.ir.size import SizeAtom
from compiler.schedule.group import Space

Level = Literal["x", "r", "tail"]

#: Statements that a kernel is there for: all others are there for these.
EFFECTS = ("store", "check")


@dataclass(frozen=True)
class Statement:
    """`target = op(operands)`; operands are numbers of statements. A store has no target.

    `node` is the loop node that it computes for; a statement that several nodes share lists all of them in `nodes`.
    A `check` has no target either: it fails with the message `value` where its operand is false. A `field` is one of
    the values (named by `value`) that a reduction of several values has made.
    """

    number: int
    target: str
    op: str
    operands: tuple[int, ...]
    dtype: torch.dtype
    level: Level
    nodes: tuple[str, ...]
    buffer: str | None = None
    index: Index | None = None
    value: bool | int | float | str | None = None

    @property
    def is_scatter(self) -> bool:
        """Whether it updates memory at an element that other points may update too; `value` says how."""
        return self.op == "store" and self.value is not None

    @lazy
    def needs(self) -> frozenset[int]:
        return frozenset(operands_of(self))


@dataclass(frozen=True)
class Section:
    """Straight-line statements of one level; at level r, one pass over the reduction loops."""

    level: Level
    statements: tuple[Statement, ...]

    @property
    def reductions(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "reduce")

    @property
    def scans(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "scan")


@dataclass(frozen=True)
class Program:
    """A kernel before it is text. `reads` and `writes` are buffers in the order of the kernel's parameters; `sizes`
    follow them, what it needs of the sizes that differ from call to call. `with_gaps` are those of `writes` whose rows
    have memory between them that nobody reads."""

    name: str
    space: Space
    sections: tuple[Section, ...]
    statements: tuple[Statement, ...]
    tail: tuple[Statement, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    storage: Mapping[str, torch.dtype] = field(hash=False)
    sizes: tuple[SizeAtom, ...] = ()
    with_gaps: frozenset[str] = frozenset()
    #: Of the buffers that are parts of a whole, that.
    wholes: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The buffers of the kernel, those that it reads first."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))

    @lazy
    def by_number(self) -> Mapping[int, Statement]:
        """The statements by their numbers."""
        return {s.number: s for s in self.statements}

    def dtype_of(self, access: Statement) -> torch.dtype:
        """What lies in the buffer of a load or store."""
        return self.storage[access.buffer or ""]

    @property
    def scatters(self) -> tuple[Statement, ...]:
        """Stores that several points may share an element of."""
        return tuple(s for s in self.statements if s.is_scatter)

    @property
    def passes(self) -> list[Section]:
        """The sections that go over the reduction loops."""
        return [section for section in self.sections if section.level == "r"]

    @property
    def first_pass(self) -> int:
        """The position of the first of them among the sections."""
        return next(position for position, section in enumerate(self.sections) if section.level == "r")

    @property
    def has_check(self) -> bool:
        return any(s.op == "check" for s in self.statements)

    @property
    def scans(self) -> tuple[Statement, ...]:
        return tuple(s for s in self.statements if s.op == "scan")

    @property
    def across(self) -> tuple[Statement, ...]:
        """Reductions over x: of level r for each r, of level x for all of them together."""
        return tuple(s for s in self.statements if s.op == "across")


def readers_of(statements: Iterable[Statement]) -> Mapping[int, list[Statement]]:
    """By the number of each statement, those that need it."""
    readers: defaultdict[int, list[Statement]] = defaultdict(list)
    for s in statements:
        for number in s.needs:
            readers[number].append(s)
    return readers


def new_numbers(statements: Iterable[Statement]) -> Iterator[int]:
    """Numbers that none of the statements has."""
    return count(1 + max((s.number for s in statements), default=0))


def closure(roots: Iterable[int], by_number: Mapping[int, Statement], ends: Collection[int] = ()) -> set[int]:
    """The numbers of the statements that those of `roots` are made from, these included, but not what `ends` are."""
    seen: set[int] = set()
    open_ = list(roots)
    while open_:
        number = open_.pop()
        if number not in seen:
            seen.add(number)
            open_ += by_number[number].needs if number not in ends else ()
    return seen
