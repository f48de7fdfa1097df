"""Fused groups: several loop nodes that run as one kernel over one iteration space.

A member keeps its node and carries the body that the group runs: the node's own body with its loop variables replaced
by formulas of the group's (its `transform`). Fusing is composing: where one member stores a buffer and another loads
it, both at the same point of the space, the value stays in a register.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.ir.body import Access, Body
from compiler.ir.index import Dim, Index
from compiler.ir.lazy import lazy
from compiler.ir.nodes import LoopNode
from compiler.ir.size import Integer, product, text_of


@dataclass(frozen=True)
class Space:
    """The loops of a group: `x` are independent points, `r` are run through for each of them by reductions."""

    x: tuple[Dim, ...]
    r: tuple[Dim, ...] = ()

    @lazy
    def _hash(self) -> int:
        return hash((self.x, self.r))

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def dims(self) -> tuple[Dim, ...]:
        """All loops, the independent ones first."""
        return (*self.x, *self.r)

    @lazy
    def numel(self) -> Integer:
        return product(dim.size for dim in self.x)

    @lazy
    def reduction_numel(self) -> Integer:
        return product(dim.size for dim in self.r)

    def __str__(self) -> str:
        return f"[{loops_text(self.x)} | {loops_text(self.r)}]" if self.r else f"[{loops_text(self.x)}]"


def loops_text(dims: tuple[Dim, ...]) -> str:
    return ", ".join(f"{dim.name} < {text_of(dim.size)}" for dim in dims)


@dataclass(frozen=True)
class Transform:
    """How a node's loops were brought to a group's: each of its variables as a formula of the group's."""

    values: tuple[tuple[Dim, Index], ...] = ()

    @staticmethod
    def of(values: Mapping[Dim, Index]) -> Transform:
        return Transform(tuple((dim, index) for dim, index in values.items() if Index.of(dim) != index))

    def then(self, values: Mapping[Dim, Index], dims: tuple[Dim, ...]) -> Transform:
        """This transform of `dims`, followed by another of the variables that it goes to."""
        known = dict(self.values)
        return Transform.of({dim: known.get(dim, Index.of(dim)).substitute(values) for dim in dims})

    def __str__(self) -> str:
        return ", ".join(f"{dim.name} = {index}" for dim, index in self.values) or "the same loops"


@dataclass(frozen=True)
class Member:
    """One node of a group; `body` runs over the group's space.

    A member that `is_across` belongs to what follows when every point of x is done: it reduces over x, not over r, for
    each r or for all of them together, or it computes with the result of one that does.

        for x: for r: rows[x] += a(x, r)              the other members
        for r: for x: columns[r] += a(x, r)           across, in the same loops: each value of `a` is made once
    """

    node: LoopNode
    body: Body
    transform: Transform = Transform()
    is_across: bool = False

    @lazy
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class Group:
    """What one kernel runs. `members` are in an order in which every value is made before it is used; `stored` are
    the buffers that must reach memory, the others live in registers. `single_pass` are members whose reduction does
    not wait for another one that it is relative to; see `schedule/program/single_pass.py`. Where it
    `is_cooperative`, several programs that wait for each other hold one row; see `schedule/tiles/cooperative.py`."""

    name: str
    space: Space
    members: tuple[Member, ...]
    stored: frozenset[str]
    single_pass: frozenset[str] = field(default=frozenset(), kw_only=True)
    is_cooperative: bool = field(default=False, kw_only=True)

    # Costs are kept by group, and each verdict asks for some.
    @lazy
    def _hash(self) -> int:
        # Groups of the same nodes are few, so their names tell them apart well enough.
        return hash((tuple(member.node.name for member in self.members), self.stored))

    def __hash__(self) -> int:
        return self._hash

    @lazy
    def tiles(self) -> dict[Hashable, Any]:
        """The tiles that were chosen for it; see `tiles/choose.py`."""
        return {}

    @lazy
    def accesses(self) -> Mapping[str, Sequence[Access]]:
        """Every distinct access, by buffer, writes first: a write visits each element just once."""
        found: defaultdict[str, dict[Access, None]] = defaultdict(dict)
        bodies = [member.body for member in self.members]
        for access in (*(a for body in bodies for a in body.writes), *(a for body in bodies for a in body.reads)):
            found[access.buffer][access] = None
        return {buffer: tuple(accesses) for buffer, accesses in found.items()}

    @lazy
    def produced(self) -> frozenset[str]:
        return frozenset(member.name for member in self.members)

    @lazy
    def computed(self) -> tuple[str, ...]:
        """The nodes that its kernel computes. Where a value is computed again in its readers (see recompute.py), that
        may be fewer than its members, and nodes of other groups."""
        written_for = dict.fromkeys(i.node for member in self.members for i in member.body.instructions if i.node)
        # No instruction is written for a mere copy: it is where it was fused.
        own = [m.name for m in self.members if m.body.instructions or m.name in written_for or m.node.body.is_copy]
        return (*own, *(name for name in written_for if name not in self.produced))

    @property
    def names(self) -> frozenset[str]:
        """The names of its nodes."""
        return self.produced

    @property
    def nodes(self) -> tuple[LoopNode, ...]:
        return tuple(member.node for member in self.members)

    @lazy
    def read_buffers(self) -> tuple[str, ...]:
        """Buffers that must be in memory before: those that are loaded, in order of first use, then those that a
        scatter changes."""
        names = [access.buffer for member in self.members for access in member.body.reads]
        names += self.updated
        return tuple(dict.fromkeys(name for name in names if name not in self.produced))

    @lazy
    def needed(self) -> frozenset[str]:
        """What must be there before: the buffers that it reads, and what it must follow besides."""
        return self.follows.union(self.read_buffers)

    @lazy
    def follows(self) -> frozenset[str]:
        """What it must follow although it reads nothing of it."""
        return frozenset().union(*(member.node.follows for member in self.members)) - self.produced

    @lazy
    def updated(self) -> tuple[str, ...]:
        """Buffers that scatters of the group change in place."""
        return tuple(member.node.updates for member in self.members if member.node.updates is not None)

    @lazy
    def stream(self) -> int | None:
        """Which of the program's streams its nodes are put on."""
        return self.members[0].node.stream

    @lazy
    def has_check(self) -> bool:
        """Whether it must run for more than the values that are read from it."""
        return any(member.node.check is not None for member in self.members)

    @lazy
    def has_scan(self) -> bool:
        """Whether the reduction loops must run in the order in which they stand."""
        return any(member.body.scan is not None for member in self.members)

    def reduces_along_memory(self, buffers: Iterable[str]) -> bool:
        """Whether a reduction loop goes along memory in one of `buffers`."""
        wanted = frozenset(buffers)
        indices = [access.index for member in self.members for access in member.body.reads if access.buffer in wanted]
        return any(index.stride(dim) == 1 for index in indices for dim in self.space.r)

    @lazy
    def writes_along_one_loop(self) -> bool:
        """Whether all that it stores lies along the same loop: not so where it stores a tensor and its transpose."""
        writes = (access for member in self.members if member.name in self.stored for access in member.body.writes)
        along = [access.fast_dims for access in writes if access.fast_dims]
        return not along or bool(frozenset.intersection(*along))

    @lazy
    def across(self) -> frozenset[str]:
        """The buffers that are known only when every point of x is done."""
        return frozenset(member.name for member in self.members if member.is_across)


@dataclass(frozen=True)
class Batch(Group):
    """Several groups in one launch, each with loops and programs of its own; none reads what another makes. `space` is
    that of the first part."""

    parts: tuple[Group, ...] = ()

    def __hash__(self) -> int:
        return hash(self.parts)


def parts_of(group: Group) -> tuple[Group, ...]:
    """The groups that a kernel runs side by side: those of a batch, else the group alone."""
    return group.parts if isinstance(group, Batch) else (group,)
