"""What if: options that ask for other decisions, and what came of each.

    force, forbid     two nodes in one kernel, or in two
    rules_off         rules of fusion that are not used
    largest_group     the most nodes of one kernel
    device_model      the device whose model decides

Before scheduling, names are turned into nodes here, with the graph as Dynamo captured it and the kernels that there
would be without the options. Afterwards the report tells what became of each directive: `why` knows it for any two
nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Literal

from compiler import report as rep
from compiler.compile import Lowered
from compiler.decisions import message_of
from compiler.ir.nodes import ExternNode, LoopNode
from compiler.options import NodePair, Options
from compiler.schedule.directives import OtherNames, nodes_by_name
from compiler.schedule.scheduler import schedule
from compiler.why import Answer, History, UnknownNode
from compiler.wording import counted, digits_apart

FORBIDDEN = "policy.forbidden"
Option = Literal["force", "forbid"]
Outcome = Literal["done", "refused", "no effect", "unknown name"]

#: Names that are listed of those that there are, where one is unknown and none looks like it.
NAMES_LISTED = 12


def other_names(lowered: Lowered, graph: rep.Graph) -> dict[str, tuple[str, ...]]:
    """The names that `force` and `forbid` use besides those of loops and ATen nodes, with the nodes they stand for: of
    Dynamo's graph, and of the kernels that there would be without the options. Where a concatenation is to stay apart,
    these are all of them: it is then not written part by part, and nothing else tells what that has undone."""
    options = lowered.options
    known = nodes_by_name(lowered.loops, {})
    asked = {name for pair in (*options.force, *options.forbid) for name in pair} - known.keys()
    wholes = _concatenations(lowered).intersection(
        node for pair in options.forbid for name in pair for node in known.get(name, ())
    )
    if not asked and not wholes:
        return {}
    history = History(graph)
    found = {name: tuple(history.loops_behind(name)) for name in asked & history.names}
    if asked <= found.keys() and not wholes:
        return found
    # A name of a kernel, such as another exploration's, or of a part: only the decisions tell what it stands for.
    return _kernels_without(lowered) | found


def _concatenations(lowered: Lowered) -> set[str]:
    """Nodes that may be written part by part."""
    loops = (node for node in lowered.loops.nodes if isinstance(node, LoopNode))
    return {node.name for node in loops if any(access.is_masked for access in node.body.reads)}


def _kernels_without(lowered: Lowered) -> dict[str, tuple[str, ...]]:
    """The nodes of each kernel that there would be without the options; and of each part of a concatenation the whole,
    which is not written part by part where a directive is about it."""
    plain = lowered.options.without_what_if()
    units = schedule(lowered.loops, lowered.model, plain).units
    groups = [unit for unit in units if not isinstance(unit, ExternNode)]
    parts = {node.name: (node.part_of,) for group in groups for node in group.nodes if node.part_of is not None}
    return parts | {group.name: tuple(member.name for member in group.members) for group in groups}


# --- what came of it


def outcomes(report: rep.Report, options: Options, other_names: Sequence[OtherNames]) -> list[rep.WhatIf]:
    """What came of every such option, once decisions are made; nothing where no graph came that far. `other_names` are
    those of each graph, as above."""
    if not options.is_what_if:
        return []
    asked = [_Asked(History(graph), names) for graph, names in zip(report.graphs, other_names, strict=True)]
    asked = [one for one in asked if one.is_scheduled]
    if not asked:
        return []
    told = [outcome for pair in options.force for outcome in _of_pair(asked, pair, _Asked.forced, "force")]
    told += [outcome for pair in options.forbid for outcome in _of_pair(asked, pair, _Asked.forbidden, "forbid")]
    told += [_of_rule(rule, report.graphs) for rule in options.rules_off]
    if options.largest_group is not None:
        told.append(_of_limit(options.largest_group, report.graphs))
    if options.device_model is not None:
        message = f"Decisions and predictions are made with the model of {report.environment.decides_for}."
        told.append(rep.WhatIf(option="device_model", asked=[options.device_model], outcome="done", message=message))
    return told


@dataclass(frozen=True)
class _Asked:
    """A graph whose decisions were made, and what its options call its nodes."""

    history: History
    other_names: OtherNames

    @property
    def is_scheduled(self) -> bool:
        graph = self.history.graph
        return bool(graph.loops) and bool(graph.rounds or graph.buffers)

    def has(self, name: str) -> bool:
        return name in self.history.names or name in self.other_names

    def nodes(self, name: str) -> Sequence[str]:
        return self.other_names.get(name) or self.history.loops_behind(name)

    def forced(self, a: str, b: str) -> rep.WhatIf:
        first = self._first_answer(a, b, are_together=False)
        if first is not None:
            which = "" if {first.a, first.b} == {a, b} else f"{first.a} and {first.b} stay apart: "
            return self._told("force", a, b, "refused", first.reason, which + first.message)
        last = self._first_answer(a, b, are_together=True)
        assert last is not None
        kernel = last.kernels[0] if last.kernels else "one kernel"
        message = f"{a} and {b} are in one kernel, {kernel}{_of_last_fusion('joined', last.decisions)}"
        return self._told("force", a, b, "done", last.reason, message)

    def forbidden(self, a: str, b: str) -> rep.WhatIf:
        same = self._first_answer(a, b, are_together=True)
        if same is not None:
            return self._told("forbid", a, b, "refused", same.reason, same.message)
        refusals = self._refusals_of_forbidden(a, b)
        answer = self._first_answer(a, b, are_together=False)
        assert answer is not None
        if not refusals and answer.reason != FORBIDDEN:
            if self._are_together_without(a, b):
                message = f"{a} and {b} stay apart; without the option one kernel has both"
                return self._told("forbid", a, b, "done", FORBIDDEN, message)
            message = f"they would not have been fused anyway: {answer.message}"
            return self._told("forbid", a, b, "no effect", answer.reason, message)
        message = f"{a} and {b} stay apart{_of_last_fusion('would have joined', refusals)}"
        return self._told("forbid", a, b, "done", FORBIDDEN, message)

    def _are_together_without(self, a: str, b: str) -> bool:
        """Whether one kernel has both without the options, as far as these kernels are known."""
        ones, twos = self._nodes_without(a), self._nodes_without(b)
        return any(not ones.isdisjoint(nodes) and not twos.isdisjoint(nodes) for nodes in self.other_names.values())

    def _nodes_without(self, name: str) -> frozenset[str]:
        """The nodes behind a name in the kernels without the options: a part alone, or a whole with its parts."""
        given = frozenset(self.nodes(name))
        known = {node for nodes in self.other_names.values() for node in nodes}
        parts = {part for part in known if not given.isdisjoint(self.other_names.get(part, ()))}
        return frozenset((name,)) if name in parts and name not in given else given | parts

    def _refusals_of_forbidden(self, a: str, b: str) -> list[rep.Decision]:
        """The fusions that only the option stood in the way of."""
        pairs = {frozenset(pair) for pair in product(self.nodes(a), self.nodes(b))}
        return [
            decision
            for decision in self.history.graph.decisions
            if decision.reason == FORBIDDEN
            and frozenset((decision.numbers["forbidden_a"], decision.numbers["forbidden_b"])) in pairs
        ]

    def _first_answer(self, a: str, b: str, are_together: bool) -> Answer | None:
        """The answer for two nodes behind the names that are in one kernel, or in two."""
        ones, twos = self.nodes(a), self.nodes(b)
        if not ones or not twos:
            return None if are_together else next(self.history.answers(a, b))
        kernel_of = self.history.kernel_of
        for one, two in product(ones, twos):
            if (one in kernel_of and kernel_of[one] == kernel_of.get(two)) == are_together:
                return self.history.answer(one, two)
        return None

    def _told(self, option: Option, a: str, b: str, outcome: Outcome, reason: str, message: str) -> rep.WhatIf:
        graph = self.history.graph.name
        return rep.WhatIf(option=option, asked=[a, b], outcome=outcome, graph=graph, reason=reason, message=message)


def _of_last_fusion(did: str, decisions: Sequence[rep.Decision]) -> str:
    """What was predicted, if anything was. Later fusions change the kernels on both sides, so this is not the time of
    any kernel that was made."""
    score = decisions[-1].score if decisions else None
    if score is None or score.fused_us is None or score.unfused_us is None:
        return ""
    times = score.fused_us, score.unfused_us
    fused, unfused = (f"{time:.{digits_apart(times)}f} us" for time in times)
    return f"; the fusion that {did} them was predicted to take {fused} instead of {unfused}"


def _of_pair(
    asked: Sequence[_Asked], pair: NodePair, tell: Callable[[_Asked, str, str], rep.WhatIf], option: Option
) -> list[rep.WhatIf]:
    """The outcome in each graph that has both names."""
    told = [tell(one, *pair) for one in asked if all(one.has(name) for name in pair)]
    if told:
        return told
    unknown = next((name for name in pair if not any(one.has(name) for one in asked)), None)
    if unknown is not None:
        message = _which_names(unknown, asked)
        return [rep.WhatIf(option=option, asked=list(pair), outcome="unknown name", message=message)]
    graph_a, graph_b = (next(one.history.graph.name for one in asked if one.has(name)) for name in pair)
    reason = "policy.other_graph"
    message = message_of(reason, {"a": pair[0], "b": pair[1], "graph_a": graph_a, "graph_b": graph_b})
    outcome: Outcome = "refused" if option == "force" else "no effect"
    return [rep.WhatIf(option=option, asked=list(pair), outcome=outcome, reason=reason, message=message)]


def _which_names(unknown: str, asked: Sequence[_Asked]) -> str:
    """That there is no such node, and which there are."""
    known = sorted({name for one in asked for name in one.history.names})
    nearest = get_close_matches(unknown, known, n=5, cutoff=0.4)
    if nearest:
        return str(UnknownNode(unknown, nearest))
    loops = [loop.name for one in asked for loop in one.history.graph.loops if not loop.dead]
    more = f" and {len(loops) - NAMES_LISTED} more" if len(loops) > NAMES_LISTED else ""
    return f"{UnknownNode(unknown, ())} There are the loops {', '.join(loops[:NAMES_LISTED])}{more}."


def _of_rule(rule: str, graphs: Sequence[rep.Graph]) -> rep.WhatIf:
    refused = sum(d.reason == "policy.disabled" and d.numbers.get("knob") == rule for g in graphs for d in g.decisions)
    message = f"The rule {rule} is not used"
    if refused:
        message += f"; it might have fused {counted(refused, 'pair')} of those looked at"
    saved = [d.predicted_saved_us or 0.0 for g in graphs for d in g.paddings if rule == "padding"]
    if saved:
        products = f"{len(saved)} product{'s are' if len(saved) > 1 else ' is'} computed as written"
        message += f"; {products}, where padding was predicted to save {sum(max(us, 0.0) for us in saved):.1f} us"
    return rep.WhatIf(option="rules_off", asked=[rule], outcome="done", reason="policy.disabled", message=message)


def _of_limit(limit: int, graphs: Sequence[rep.Graph]) -> rep.WhatIf:
    reason = "policy.group_size"
    refused = sum(d.reason == reason for g in graphs for d in g.decisions)
    message = f"No kernel has more than {counted(limit, 'node')}; the limit refused {counted(refused, 'pair')}"
    outcome: Outcome = "done" if refused else "no effect"
    return rep.WhatIf(option="largest_group", asked=[str(limit)], outcome=outcome, reason=reason, message=message)
