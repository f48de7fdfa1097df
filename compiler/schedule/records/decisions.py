"""What is kept of each pair that the scheduler looked at.

The scheduler asks about tens of thousands of pairs of a large graph, so a record holds what both sides were at that
moment and the answer, and nothing that can be told from them: names, lines and sentences are worked out when they are
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.decisions import Refuse
from compiler.ir.body import Access
from compiler.ir.nodes import ExternNode, Layout
from compiler.schedule.group import Group
from compiler.schedule.records.classify import exact_reason
from compiler.schedule.rules import Fuse, shared_buffers
from compiler.schedule.units import Unit, UnitGraph


@dataclass(eq=False, slots=True)
class Decision:
    """One pair, `one` before `two` where one depends on the other, as they were when they were asked about.

    `needed` are the buffers stored by either that a third unit or the caller reads, which a kernel of both would have
    to store as well; `about` names the buffer that the verdict is about, where the rule knows."""

    round: int
    one: Unit
    two: Unit
    layouts: dict[str, Layout]
    verdict: Fuse | Refuse
    needed: frozenset[str] = frozenset()
    about: str | None = None
    _known: tuple[tuple[str, ...], bool] | None = None

    def _find_shared(self) -> tuple[tuple[str, ...], bool]:
        if self._known is None:
            shared, is_vertical = shared_buffers(self.one, self.two, self.layouts)
            about = self.about or self.verdict.numbers.get("shared")
            if about is not None:
                shared = [about, *(name for name in shared if name != about)]
            self._known = tuple(shared), is_vertical
        return self._known

    @property
    def shared(self) -> tuple[str, ...]:
        """The buffers that both touch, the one that the verdict is about first."""
        return self._find_shared()[0]

    @property
    def is_vertical(self) -> bool:
        """Whether the second unit reads what the first one makes."""
        return self._find_shared()[1]

    @property
    def reason(self) -> str:
        """The id of the reason; of a refusal the most exact one that holds."""
        if isinstance(self.verdict, Refuse):
            return exact_reason(self.verdict, self.one, self.two, self.shared)
        return self.verdict.reason

    @property
    def a(self) -> str:
        """The node at which the first unit touches what is shared."""
        return self._named_by("writer", self.one) or _node_at(self.one, self.shared, is_maker=self.is_vertical)

    @property
    def b(self) -> str:
        return self._named_by("reader", self.two) or _node_at(self.two, self.shared, is_maker=False)

    def _named_by(self, role: str, unit: Unit) -> str | None:
        """The node that a refusal names as the writer or the reader, if it is one of the unit's."""
        name = self.verdict.numbers.get(role)
        return name if name in unit.names else None

    @property
    def lines(self) -> tuple[int, ...]:
        """The user's lines behind both units."""
        return tuple(sorted({line for unit in (self.one, self.two) for node in unit.nodes for line in node.lines}))

    @property
    def names(self) -> dict[str, Any]:
        """What the message of a reason may speak of."""
        names: dict[str, Any] = {"a": self.a, "b": self.b, "shared": self.shared[0] if self.shared else "nothing"}
        for side, unit in (("a", self.one), ("b", self.two)):
            if isinstance(unit, Group):
                names[f"space_{side}"] = str(unit.space)
                names[f"iterations_{side}"] = unit.space.numel * unit.space.reduction_numel
            elif isinstance(unit, ExternNode) and unit.write_buffers:  # a product, as a kernel of ours would make it
                result = self.layouts[unit.write_buffers[0]]
                names[f"space_{side}"] = " x ".join(map(str, result.shape))
                names[f"iterations_{side}"] = result.numel
        return names | self.verdict.numbers


def decision_on(graph: UnitGraph, a: int, b: int, turn: int, verdict: Fuse | Refuse, about: str | None) -> Decision:
    """The record of a verdict on two units; `about` names the buffer that it is about, where that is not the first one
    that both touch."""
    one, two = graph.units[a], graph.units[b]
    needed: frozenset[str] = frozenset()
    if isinstance(verdict, Refuse):
        needed = graph.escaping((*one.stored, *two.stored), {a, b})
    return Decision(turn, one, two, graph.layouts, verdict, needed, about)


def access_of(unit: Group, buffer: str) -> tuple[str, Access] | None:
    """The first access of `buffer` in the unit, a write before a read, with the name of the node that makes it."""
    for member in unit.members:
        if member.name == buffer and member.body.writes:
            return member.name, member.body.writes[0]
    return next(
        ((member.name, access) for member in unit.members for access in member.body.reads if access.buffer == buffer),
        None,
    )


def _node_at(unit: Unit, shared: tuple[str, ...], is_maker: bool) -> str:
    """The member through which the unit touches the first shared buffer."""
    if isinstance(unit, ExternNode) or not shared:
        return unit.name if isinstance(unit, ExternNode) else unit.members[-1].name
    if is_maker and shared[0] in unit.produced:
        return shared[0]
    found = access_of(unit, shared[0])
    return unit.members[-1].name if found is None else found[0]
