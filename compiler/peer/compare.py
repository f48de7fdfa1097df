"""The stage `compare`: TorchInductor on the calls that the snippet made, checked as ours are, and all whose results are
right timed against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.budget import PLANNED, UNLIMITED, Budget, OutOfTime, in_seconds
from compiler.capture.captured import Capture, EntryCall
from compiler.capture.reference import is_random
from compiler.lease import TimingTurns
from compiler.options import Options
from compiler.peer.inductor import explore_peer
from compiler.report import Kernel, Peer, TimingResult, WrongResult
from compiler.runtime.gradients import check_call, graphs_of
from compiler.runtime.measure import ContestantName, measure
from compiler.runtime.wrong_results import checked_call
from compiler.snippet_changes import NO_CHANGES, SnippetChanges


@dataclass(frozen=True)
class Compared:
    """What came of the peer; `timing` is new where the peer was timed."""

    peer: Peer
    timing: TimingResult | None
    wrong: list[WrongResult] = field(default_factory=list)


@dataclass
class _Explored:
    """The peer's function for every entry, and what was told of each."""

    functions: list[Callable[..., Any]] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    wrong: list[WrongResult] = field(default_factory=list)
    seconds: float = 0.0


def compare_with_peer(
    captured: Capture,
    options: Options,
    timing: TimingResult | None,
    is_compiled_wrong: bool = False,
    budget: Budget = UNLIMITED,
    turns: TimingTurns | None = None,
    changes: SnippetChanges = NO_CHANGES,
) -> Compared:
    """TorchInductor's kernels for every callable that the snippet compiled, and new times with the peer among them.

    `timing` is what was measured without the peer. It is given back where the peer cannot compile the snippet, which is
    then said in the peer's message, where its results are wrong, and where no times are wanted. Contestants that were
    not interleaved with each other would not be comparable, so with the peer all are measured again; a compiled result
    that is wrong stays out of it. A peer that has not compiled when the budget is spent is stopped; one for which there
    is no time left beside the others is not timed. Its message says so. Times are taken in one of `turns`.
    """
    limit = budget.left
    entries = captured.timed_entries
    found = _Explored()
    with_backward = any(graph.phase == "backward" for graph in captured.graphs)
    for entry in entries:
        args, kwargs = entry.copy_arguments()
        try:
            with budget.stopping(), changes.in_force():
                function, explored = explore_peer(
                    entry.eager, args, kwargs, captured.device, options.mode, with_backward=with_backward
                )
            wrong, unchecked = _check(entry, captured, function, budget, changes)
        except OutOfTime:
            message = f"TorchInductor had not compiled {entry.name} after the {in_seconds(limit)} that were left for it"
            return Compared(Peer(message=f"{message}: allow more time (`max_seconds`)."), timing)
        except Exception as error:  # the peer's failure is a finding, not a failure of ours
            return Compared(_failed(entry, error), timing)
        found.functions.append(function)
        found.kernels += explored.kernels
        found.seconds += explored.compile_s
        found.wrong += wrong
        told = " ".join(sentence for sentence in (explored.message, unchecked) if sentence)
        found.messages.append(f"{entry.name}: {told}" if len(entries) > 1 else told)
    peer = Peer(kernels=found.kernels, message=" ".join(found.messages) or None)
    if timing is None or not entries or not options.timing.enabled or found.wrong:
        return Compared(peer, timing, found.wrong)
    try:
        with (turns or TimingTurns()).turn():
            return Compared(peer, _raced(captured, options, timing, found, is_compiled_wrong, budget, changes))
    except OutOfTime:
        late = "It was not timed: one call of each of the three takes longer than there was time left."
        return Compared(peer.model_copy(update={"message": " ".join([*found.messages, late])}), timing)


def _failed(entry: EntryCall, error: Exception) -> Peer:
    return Peer(message=f"TorchInductor failed on {entry.name}: {type(error).__name__}: {error}")


def _check(
    entry: EntryCall, captured: Capture, function: Callable[..., Any], budget: Budget, changes: SnippetChanges
) -> tuple[list[WrongResult], str]:
    """What is wrong with the peer's results and gradients, and why they were not checked, if they were not."""
    graphs = graphs_of(entry, captured)
    if any(map(is_random, graphs)):
        return [], "Its results were not checked: random numbers are drawn, and eager draws others."
    try:
        with budget.stopping():
            return checked_call(check_call(entry, graphs, function, changes), "peer").wrong, ""
    except OutOfTime:
        return [], "Its results were not checked: that takes longer than there was time left."
    except Exception as error:  # of the run in float64, not of the peer
        reason = str(error) if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
        return [], f"Its results were not checked: {reason}."


def _raced(
    captured: Capture,
    options: Options,
    timing: TimingResult,
    found: _Explored,
    is_compiled_wrong: bool,
    budget: Budget,
    changes: SnippetChanges,
) -> TimingResult:
    """All contestants in turn. Raises `OutOfTime` where one call of each takes longer than the budget."""
    entries = captured.timed_entries
    calls: dict[ContestantName, Callable[[], object]] = {
        "eager": _all(entries, [entry.eager for entry in entries]),
        "compiled": _all(entries, [entry.compiled for entry in entries]),
        "peer": _all(entries, found.functions),
    }
    if is_compiled_wrong:
        del calls["compiled"]
    with budget.stopping():
        raced = measure(calls, captured.device, options.timing, budget.share(PLANNED), changes)
    known = {one.name: one.compile_s for one in timing.contestants}
    for one in raced.contestants:
        one.compile_s = found.seconds if one.name == "peer" else known.get(one.name)
    return raced


def _all(entries: Sequence[EntryCall], functions: Sequence[Callable[..., Any]]) -> Callable[[], object]:
    """One call of each function on the arguments of its entry."""
    calls = [(function, *entry.copy_arguments()) for entry, function in zip(entries, functions, strict=True)]

    def call() -> None:
        for function, args, kwargs in calls:
            function(*args, **kwargs)

    return call
