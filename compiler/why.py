"""Why two nodes of a program are, or are not, in one kernel: told from a report alone, for any two.

The scheduler asks about pairs that share a buffer, and a report has an answer for each of those. About any other pair
it is told here why the scheduler never asked. A node may be named as a loop node, as a node of either FX graph, as a
kernel (which stands for its nodes; `K2` is the second of its graph), or as an operator (`sum` stands for `sum_1` and
`sum_2`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field

from compiler.decisions import message_of
from compiler.pages import sentences
from compiler.report import Decision, Graph, LoopNode, Report, ReportModel
from compiler.rounds import every_unit, units_after

#: What is not there any more, other than a view or a constant, which their readers look through.
_GONE = frozenset(("dead", "common_subexpression"))

#: Read when this is imported: a confined process may not read them later.
_SENTENCES = sentences()
#: A name may stand for many loop nodes; so many pairs of them are answered at most.
MOST_PAIRS = 9


class UnknownNode(KeyError):
    """No graph of the report has a node of this name; `nearest` are names that look like it."""

    def __init__(self, name: str, nearest: Sequence[str]) -> None:
        hint = f" The nearest {'is' if len(nearest) == 1 else 'are'} {', '.join(nearest)}." if nearest else ""
        super().__init__(f"There is no node named {name!r} in any graph of this report.{hint}")
        self.name, self.nearest = name, tuple(nearest)

    def __str__(self) -> str:
        return str(self.args[0])


class Answer(ReportModel):
    """Why two loop nodes are, or are not, in one kernel.

    `verdict` is "fused" where both ended in one kernel: `decisions` is then the chain of fusions that brought them
    together. Of a refusal they are every decision on the two or on the groups that they were in, the last one at the
    end, whose reason is the answer's."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "graph": "graph_0",
                "a": "buf0",
                "b": "buf1",
                "verdict": "never considered",
                "reason": "policy.nothing_shared",
                "message": "They share no buffer, so fusing them would save nothing.",
            }
        }
    )

    graph: str = Field(description="The graph that has both. If none has, both graphs with a comma between them.")
    a: str = Field(description="The first loop node's name.")
    b: str = Field(description="The second loop node's name.")
    verdict: Literal["fused", "refused", "never considered"] = Field(description="What became of the two.")
    reason: str = Field(description="Id of the reason, as GET /api/v1/reasons lists them.", examples=["shape.numel"])
    message: str = Field(description="The reason in a sentence, with its numbers.")
    would_fuse_if: str = Field(default="", description='What would have to change for them to fuse. "" if unknown.')
    kernels: list[str] = Field(default=[], description="The kernel that holds both, or the kernels of a and of b.")
    lines: list[int] = Field(default=[], description="Lines of the snippet that the two come from.")
    decisions: list[Decision] = Field(default=[], description="The decisions that the answer rests on, in their order.")


def why(report: Report, a: str, b: str, most: int = MOST_PAIRS) -> list[Answer]:
    """The answers for two names, those that were asked about first: one for each pair of loop nodes that the names
    stand for, in each graph that has both, and no more than `most`. Of two kernels, the pair of nodes that decided is
    the first.

    Raises UnknownNode for a name that no graph has."""
    histories = [History(graph) for graph in report.graphs]
    known = frozenset(name for history in histories for name in history.names)
    for name in (a, b):
        if name not in known:
            raise UnknownNode(name, get_close_matches(name, sorted(known), n=5, cutoff=0.4))
    both = [history for history in histories if a in history.names and b in history.names]
    if not both:
        graph_a, graph_b = (next(h.graph.name for h in histories if name in h.names) for name in (a, b))
        names = {"graph_a": graph_a, "graph_b": graph_b}
        return [_never(f"{graph_a}, {graph_b}", a, b, "policy.other_graph", names)]
    answers = [answer for history in both for answer in history.answers(a, b)]
    decisive = {(history.graph.name, pair) for history in both for pair in history.decisive(a, b)}

    def rank(answer: Answer) -> tuple[bool, int]:
        return (answer.graph, frozenset((answer.a, answer.b))) not in decisive, _ORDER[answer.verdict]

    return sorted(answers, key=rank)[:most]


def _operator_of(node: str) -> str:
    """torch numbers the nodes of one operator, the first `sum` too, since that is a function of Python's."""
    return _NUMBER.sub("", node)


_NUMBER = re.compile(r"_\d+$")
_ORDER = {"fused": 0, "refused": 1, "never considered": 2}


def _never(graph: str, a: str, b: str, reason: str, names: dict[str, Any], lines: Sequence[int] = ()) -> Answer:
    return Answer(
        graph=graph,
        a=a,
        b=b,
        verdict="never considered",
        reason=reason,
        message=message_of(reason, {"a": a, "b": b} | names),
        lines=list(lines),
    )


@dataclass(frozen=True)
class History:
    """One graph, and which units each of its nodes was in."""

    graph: Graph

    @cached_property
    def loops(self) -> dict[str, LoopNode]:
        return {loop.name: loop for loop in self.graph.loops}

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that a question may use."""
        return self.own_names.union(_operator_of(node.name) for node in self.graph.aten)

    @cached_property
    def own_names(self) -> frozenset[str]:
        nodes = [node.name for node in (*self.graph.aten, *self.graph.fx)]
        return frozenset((*self.loops, *nodes, *self.kernels))

    @cached_property
    def kernels(self) -> dict[str, list[int]]:
        """Positions of the kernels that a name stands for."""
        positions: dict[str, list[int]] = {}
        for position, kernel in enumerate(self.graph.kernels):
            positions.setdefault(kernel.name, []).append(position)
            positions[f"K{position + 1}"] = [position]
        return positions

    @cached_property
    def units(self) -> dict[int, tuple[str, ...]]:
        return every_unit(self.graph)

    @cached_property
    def kernel_of(self) -> dict[str, int]:
        """A number for each node, the same for those of one kernel. Where there are no kernels yet, it is by the last
        unit that a node was in. That may be another one: what leads to a part of a concatenation stays in the unit of
        the whole, until all is decided."""
        units = {name: -1 - number for number, nodes in units_after(self.graph).items() for name in nodes}
        kernels = {name: position for position, kernel in enumerate(self.graph.kernels) for name in kernel.nodes}
        return units | {name: position for name, position in kernels.items() if name in units}

    def loops_behind(self, name: str) -> list[str]:
        """The loop nodes that a name stands for."""
        if name in self.loops:
            return [name]
        if name not in self.own_names:
            origins = {node.name for node in self.graph.aten if _operator_of(node.name) == name}
            return [loop.name for loop in self.graph.loops if not origins.isdisjoint(loop.origins)]
        origins = {name}
        if name in self.kernels and all(node.name != name for node in (*self.graph.aten, *self.graph.fx)):
            return [node for position in self.kernels[name] for node in self.graph.kernels[position].nodes]
        if all(node.name != name for node in self.graph.aten):
            # Dynamo's graph has names of its own: the two meet at the user's lines.
            lines = {line for node in self.graph.fx if node.name == name and not node.dead for line in node.lines}
            origins = {node.name for node in self.graph.aten if lines and lines == set(node.lines)}
        return [loop.name for loop in self.graph.loops if not origins.isdisjoint(loop.origins)]

    def decisive(self, a: str, b: str) -> Iterator[frozenset[str]]:
        """The nodes whose refusal decided that two kernels stay apart."""
        ones, twos = (set(self.kernels.get(name, ())) for name in (a, b))
        for refusal in self.graph.refusals:
            one, two = refusal.kernels
            if (one in ones and two in twos) or (two in ones and one in twos):
                decision = self.graph.decisions[refusal.decisions[0]]
                yield frozenset((decision.a, decision.b))

    def answers(self, a: str, b: str) -> Iterator[Answer]:
        ones, twos = self.loops_behind(a), self.loops_behind(b)
        for name, found in ((a, ones), (b, twos)):
            if not found:
                yield self._without_loop(a, b, name)
                return
        pairs = dict.fromkeys((one, two) for one in ones for two in twos)
        yield from (self.answer(one, two) for one, two in pairs)

    def _without_loop(self, a: str, b: str, name: str) -> Answer:
        removed = next((removed for removed in self.graph.removed if removed.node == name), None)
        if removed is None or removed.kind not in _GONE:
            return _never(self.graph.name, a, b, "policy.no_loop", {"name": name})
        names = {"removed": name, "because": removed.because}
        return _never(self.graph.name, a, b, "policy.removed", names, removed.lines)

    def answer(self, a: str, b: str) -> Answer:
        """The answer for two loop nodes."""
        lines = sorted({*self.loops[a].lines, *self.loops[b].lines})
        dead = next((name for name in (a, b) if self.loops[name].dead), None)
        if dead is not None:
            names = {"removed": dead, "because": "no result of the program needs it"}
            return _never(self.graph.name, a, b, "policy.removed", names, lines)
        if a == b:
            return self._one_node(a, lines)
        if self.kernel_of[a] == self.kernel_of[b]:
            return self._together(a, b, lines)
        decisions = [self._told(row) for row in self._asked(a, b) if not _fuses(row[3])]
        if not decisions:
            return self._never_asked(a, b, lines)
        # Whether a value is computed again comes up only where the two were not fused, for the reason before it.
        last = next((d for d in reversed(decisions) if not d.reason.endswith(".recompute")), decisions[-1])
        return Answer(
            graph=self.graph.name,
            a=a,
            b=b,
            verdict="refused",
            reason=last.reason,
            message=last.message,
            would_fuse_if=last.would_fuse_if,
            kernels=self._kernels(a, b),
            lines=lines,
            decisions=decisions,
        )

    def _kernels(self, *nodes: str) -> list[str]:
        return [kernel.name for node in nodes for kernel in self.graph.kernels if node in kernel.nodes]

    def _one_node(self, a: str, lines: list[int]) -> Answer:
        message = message_of("fused.one_node", {"a": a, "b": a})
        kernels = self._kernels(a)
        return Answer(
            graph=self.graph.name, a=a, b=a, verdict="fused", reason="fused.one_node", message=message,
            kernels=kernels, lines=lines,
        )  # fmt: skip

    # --- what was asked

    def _asked(self, a: str, b: str) -> list[tuple[int, int, int, str]]:
        """Every decision on a unit of the one and a unit of the other: both units, the round, the reason."""
        mine = {number for number, nodes in self.units.items() if a in nodes and b not in nodes}
        theirs = {number for number, nodes in self.units.items() if b in nodes and a not in nodes}
        rows = [(d.sides[0].unit, d.sides[1].unit, d.round, d.reason) for d in self.graph.decisions if d.sides]
        rows = sorted([*rows, *self.graph.more_decisions], key=lambda row: row[2])
        return [row for row in rows if (row[0] in mine and row[1] in theirs) or (row[1] in mine and row[0] in theirs)]

    @cached_property
    def _at_length(self) -> dict[tuple[int, int, int, str], Decision]:
        return {(d.sides[0].unit, d.sides[1].unit, d.round, d.reason): d for d in self.graph.decisions if d.sides}

    def _told(self, row: tuple[int, int, int, str]) -> Decision:
        """The decision at length; of one that the report keeps as four figures, what those tell."""
        known = self._at_length.get(row)
        if known is not None:
            return known
        one, two, turn, reason = row
        a, b = self.units[one][-1], self.units[two][0]
        return Decision(
            a=a,
            b=b,
            round=turn,
            kind="vertical" if reason in ("fused.vertical", "fused.inline", "fused.recompute") else "horizontal",
            verdict="fused" if reason.startswith("fused.") else "refused",
            reason=reason,
            message=_SENTENCES.get(reason, reason),
            lines=sorted({line for name in (*self.units[one], *self.units[two]) for line in self.loops[name].lines}),
        )

    def _together(self, a: str, b: str, lines: list[int]) -> Answer:
        """The fusions that brought two nodes into one kernel, in order."""
        chain: list[Decision] = []
        made = {(x, y): (turn.number, z) for turn in self.graph.rounds for x, y, z in turn.fused}
        reasons = {
            (d.sides[0].unit, d.sides[1].unit): d for d in self.graph.decisions if d.makes is not None and d.sides
        }
        more = {(x, y): (x, y, turn, reason) for x, y, turn, reason in self.graph.more_decisions if _fuses(reason)}
        joined: tuple[str, ...] = ()
        for pair, (_, number) in made.items():
            nodes = self.units[number]
            holds_both_before = any(a in self.units[unit] and b in self.units[unit] for unit in pair)
            if (a in nodes or b in nodes) and not holds_both_before:
                known = reasons.get(pair)
                chain += [known] if known is not None else [self._told(more[pair])] if pair in more else []
                if a in nodes and b in nodes:
                    joined = nodes if known is None and pair not in more else ()
                    break
        else:  # the one leads to the other, a part of a concatenation, which was split off later
            chain = []
        reason, message = (chain[-1].reason, chain[-1].message) if chain else self._led_to_a_part(a, b)
        if joined:  # parts of a concatenation that one kernel writes, which no fusion brought together
            wholes = sorted({whole for name in joined if (whole := self.loops[name].part_of) is not None})
            reason, message = "fused.parts", message_of("fused.parts", {"whole": " and ".join(wholes)})
        return Answer(
            graph=self.graph.name,
            a=a,
            b=b,
            verdict="fused",
            reason=reason,
            message=f"{a} and {b} are in the same kernel" + (message and f": {message}"),
            kernels=self._kernels(a),
            lines=lines,
            decisions=chain,
        )

    def _led_to_a_part(self, a: str, b: str) -> tuple[str, str]:
        """The reason and the message where one of two nodes of a kernel leads to a part of a concatenation in it, and
        the scheduler knew it by the whole."""
        parts = [name for name, kernel in self.kernel_of.items() if kernel == self.kernel_of[a]]
        parts = [name for name in parts if self.loops[name].part_of is not None]
        units = units_after(self.graph).values()
        for name in (a, b):
            (unit,) = (nodes for nodes in units if name in nodes)
            for part in parts:
                if part not in unit and self.loops[part].part_of in unit:
                    return "fused.inline", message_of("fused.inline", {"a": name, "b": part, "shared": name})
        return "fused.vertical", ""

    # --- what was not

    def _never_asked(self, a: str, b: str, lines: list[int]) -> Answer:
        one, two = self.loops[a], self.loops[b]
        shared = sorted(_touched(one) & _touched(two))
        if shared and one.kind == two.kind == "extern":
            reason = "kind.fallback" if one.fallback and two.fallback else "kind.extern"
            return _never(self.graph.name, a, b, reason, {"extern": f"Each of {a} and {b}"}, lines)
        if shared:
            readers = sum(shared[0] in {access.buffer for access in loop.reads} for loop in self.graph.loops)
            return _never(self.graph.name, a, b, "policy.far_apart", {"shared": shared[0], "readers": readers}, lines)
        loops = _space(one)
        if loops and loops == _space(two):
            return _never(self.graph.name, a, b, "policy.only_loops_shared", {"space_a": loops}, lines)
        return _never(self.graph.name, a, b, "policy.nothing_shared", {}, lines)


def _fuses(reason: str) -> bool:
    return reason.startswith("fused.") and reason != "fused.recompute"


def _touched(loop: LoopNode) -> set[str]:
    return {access.buffer for access in (*loop.reads, *loop.writes)}


def _space(loop: LoopNode) -> str:
    sizes = " × ".join(map(str, loop.sizes))
    reduced = " × ".join(map(str, loop.reduction_sizes))
    return f"{sizes} | {reduced}" if reduced else sizes
