"""From the sizes of a sweep to its result: what is not as it was at the size before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compiler import report as rep
from compiler.wording import listed

#: Flips of one size, and pairs of the whole sweep, that are listed; of the others the report has the number.
MOST_FLIPS, MOST_PAIRS = 50, 200

#: Fusions that share a launch, or what was computed twice, and no loop nest.
_LOOSE = ("fused.batch", "fused.recompute")

#: A pair by its graph and its nodes' names: names come from the snippet's operators, not from their sizes.
PairName = tuple[str, str, str]


@dataclass
class Attempt:
    """One size: its figures, the last decision on every pair, the kernels of every node by its graph and name, and the
    shapes that were captured."""

    size: rep.SweptSize
    decisions: dict[PairName, rep.Decision] = field(default_factory=dict)
    kernels: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    shapes: tuple[tuple[rep.SizeText, ...], ...] = ()

    @property
    def has_kernels(self) -> bool:
        return self.size.launches is not None

    def outcome(self, pair: PairName) -> rep.Outcome | None:
        """None where this size does not have both nodes."""
        graph, a, b = pair
        if (graph, a) not in self.kernels or (graph, b) not in self.kernels:
            return None
        together = bool(self.kernels[graph, a] & self.kernels[graph, b])
        decision = self.decisions.get(pair)
        if decision is None:
            return rep.Outcome(verdict="never considered", together=together)
        return rep.Outcome(verdict=decision.verdict, reason=decision.reason, together=together)


def attempt_of(size: rep.SweptSize, graphs: Sequence[rep.Graph]) -> Attempt:
    """What is compared, from the graphs of a report. Of the answers for a pair, one a round, the last one counts."""
    attempt = Attempt(size)
    for graph in graphs:
        for position, kernel in enumerate(graph.kernels):
            for node in kernel.nodes:
                attempt.kernels.setdefault((graph.name, node), set()).add(position)
        for decision in sorted(graph.decisions, key=lambda decision: decision.round):
            attempt.decisions[graph.name, decision.a, decision.b] = decision
    inputs = [node for graph in graphs for node in graph.aten if node.op == "placeholder"]
    attempt.shapes = tuple(tuple(node.shape or ()) for node in inputs)
    return attempt


def result_of(name: str, attempts: Sequence[Attempt]) -> rep.SweepResult:
    """Mark the flips of every size, list the pairs, and say in a sentence where something flips."""
    before: Attempt | None = None
    for attempt in attempts:
        flips = list(_flips(before, attempt)) if before is not None and attempt.has_kernels else []
        attempt.size.flips, attempt.size.more_flips = flips[:MOST_FLIPS], max(0, len(flips) - MOST_FLIPS)
        before = attempt if attempt.has_kernels else before
    pairs = _pairs(attempts)
    return rep.SweepResult(
        name=name,
        sizes=[attempt.size for attempt in attempts],
        pairs=pairs[:MOST_PAIRS],
        more_pairs=max(0, len(pairs) - MOST_PAIRS),
        verdict=_verdict(name, attempts),
    )


def _flips(before: Attempt, after: Attempt) -> Iterator[rep.Flip]:
    for about in ("launches", "kernels"):
        old, new = getattr(before.size, about), getattr(after.size, about)
        if old != new:
            yield rep.Flip(kind="kernels", about=about, before=str(old), after=str(new))
            break
    for kernel, plan in after.size.plans.items():
        earlier = before.size.plans.get(kernel, plan)
        if earlier != plan:
            yield rep.Flip(kind="choice", about=kernel, before=earlier, after=plan)
    pairs = [(pair, before.outcome(pair), after.outcome(pair)) for pair in _in_order(before, after)]
    # Pairs that the scheduler answers otherwise first: the others follow from them.
    for pair, was, now in sorted(pairs, key=lambda one: _is_answered_alike(one[1], one[2])):
        if _is_flip(was, now):
            graph, a, b = pair
            yield rep.Flip(kind="verdict", graph=graph, about=f"{a} + {b}", before=said(was), after=said(now))


def _is_flip(was: rep.Outcome | None, now: rep.Outcome | None) -> bool:
    """Whether a pair came apart or together, or is together in another way, or apart for another reason.

    Which of the nodes of a loop nest were fused first, and so which pairs were asked about, differs from size to size
    and changes nothing."""
    if was is None or now is None:
        return was is not now
    if was.together != now.together:
        return True
    ways = _way(was), _way(now)
    return None not in ways and ways[0] != ways[1]


def _way(outcome: rep.Outcome) -> str | None:
    """How a pair is together, or why it is apart; None where nothing was answered that tells."""
    if not outcome.together:
        return outcome.reason
    if outcome.verdict != "fused":
        return None
    return outcome.reason if outcome.reason in _LOOSE else "one loop nest"


def _is_answered_alike(was: rep.Outcome | None, now: rep.Outcome | None) -> bool:
    return was is None or now is None or was.verdict == now.verdict or "never considered" in (was.verdict, now.verdict)


def said(outcome: rep.Outcome | None) -> str:
    """An outcome in a few words, such as `refused: shape.numel`."""
    if outcome is None:
        return "no such nodes"
    answer = outcome.verdict if outcome.reason is None else f"{outcome.verdict}: {outcome.reason}"
    return f"{answer}, yet in one kernel" if outcome.together and outcome.verdict != "fused" else answer


def _in_order(*attempts: Attempt) -> list[PairName]:
    return list(dict.fromkeys(pair for attempt in attempts for pair in attempt.decisions))


def _pairs(attempts: Sequence[Attempt]) -> list[rep.SweptPair]:
    """Every pair of every size, those that flip first. A size that has no kernels flips nothing."""
    alive = [attempt for attempt in attempts if attempt.has_kernels]
    pairs = []
    for pair in _in_order(*alive):
        graph, a, b = pair
        outcomes = [attempt.outcome(pair) if attempt.has_kernels else None for attempt in attempts]
        compared = [outcome for attempt, outcome in zip(attempts, outcomes, strict=True) if attempt.has_kernels]
        flips = any(_is_flip(was, now) for was, now in pairwise(compared))
        pairs.append(rep.SweptPair(graph=graph, a=a, b=b, outcomes=outcomes, flips=flips))
    return sorted(pairs, key=lambda pair: not pair.flips)


def _verdict(name: str, attempts: Sequence[Attempt]) -> str:
    wrong = [str(attempt.size.value) for attempt in attempts if attempt.size.wrong_results]
    first = f"Wrong results, so no times, at {name} = {listed(wrong)}. " if wrong else ""
    return first + _said_of_flips(name, attempts)


def _said_of_flips(name: str, attempts: Sequence[Attempt]) -> str:
    alive = [attempt for attempt in attempts if attempt.has_kernels]
    if len(alive) < 2:
        return f"Fewer than two sizes of {name} became kernels, so there is nothing to compare."
    if len({attempt.shapes for attempt in alive}) == 1:
        return f"The tensors are the same at every {name}: what was compiled does not depend on it."
    flipping = [str(attempt.size.value) for attempt in alive if attempt.size.flips]
    failed = len(attempts) - len(alive)
    but = f" {failed} of {len(attempts)} sizes failed." if failed else ""
    if not flipping:
        return f"The compiler decides the same at all {len(alive)} sizes of {name}.{but}"
    return f"The compiler decides differently from the size before at {name} = {listed(flipping)}.{but}"
