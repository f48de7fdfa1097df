"""The stage `compare`: TorchInductor, and whoever else was asked for, on the calls that the snippet made.

All are made alike: compiled by a first call of each entry, and checked as ours are. Who fails says why, and costs the
others nothing. Those whose results are right are then timed against each other, ours and eager among them.

Somebody else's code may also end the process, or never return. Where it can be found out in a copy of the process, it
is. A copy cannot use a GPU: there they are asked last, when all others have been timed and that is published. The
report as it was then names who was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import torch

from compiler.budget import PLANNED, UNLIMITED, Budget, OutOfTime, in_seconds
from compiler.capture.captured import Capture, EntryCall
from compiler.capture.reference import is_random
from compiler.capture.torch_state import compiled_in_state
from compiler.compile_phases import added_up
from compiler.lease import TimingTurns
from compiler.options import Options
from compiler.peer.aligned import aligned
from compiler.peer.apart import ends_a_process
from compiler.peer.contestants import ALWAYS, UnknownContestant, is_foreign, maker_of
from compiler.peer.errors import References, errors_of_calls
from compiler.peer.inductor import ExploredPeer, Recording, compiling_quickly, explore_peer
from compiler.peer.our_terms import Translation
from compiler.report import CompilePhaseName, ContestantOutcome, Graph, Peer, TimingResult, WrongResult
from compiler.runtime.checking.gradients import graphs_of
from compiler.runtime.checking.wrong_results import checked_call, finite, largest
from compiler.runtime.timing.measure import measure
from compiler.runtime.trial import call_of_all
from compiler.snippet_changes import NO_CHANGES, SnippetChanges

#: A function that runs an entry, after its first call, and what was heard of it.
Made = tuple[Callable[..., Any], ExploredPeer]


@dataclass(frozen=True)
class Compared:
    """What came of the peer; `timing` is new where others than eager and ours were timed."""

    peer: Peer
    timing: TimingResult | None
    wrong: list[WrongResult] = field(default_factory=list)
    phases: Mapping[CompilePhaseName, float] = field(default_factory=dict)


@dataclass
class _Contestant:
    """One who was asked: a function for every entry, and what was found of each; or why there is none."""

    name: str
    functions: list[Callable[..., Any]] = field(default_factory=list)
    explored: list[ExploredPeer] = field(default_factory=list)
    on_generated: Callable[[], None] = lambda: None
    messages: list[str] = field(default_factory=list)
    wrong: list[WrongResult] = field(default_factory=list)
    error: float | None = None
    failure: str | None = None

    @property
    def seconds(self) -> float:
        return sum(one.compile_s for one in self.explored)

    @property
    def has_times(self) -> bool:
        return self.failure is None and not self.wrong

    @property
    def title(self) -> str:
        return "TorchInductor" if self.name == "peer" else self.name


@dataclass(frozen=True)
class _Calls:
    """The calls that all have to make."""

    captured: Capture
    options: Options
    changes: SnippetChanges
    references: References

    @property
    def entries(self) -> list[EntryCall]:
        return self.captured.timed_entries


def compare_with_peer(
    captured: Capture,
    options: Options,
    timing: TimingResult | None,
    is_compiled_wrong: bool = False,
    budget: Budget = UNLIMITED,
    turns: TimingTurns | None = None,
    changes: SnippetChanges = NO_CHANGES,
    graphs: Sequence[Graph] = (),
    publish: Callable[[Peer, TimingResult | None], None] = lambda *_: None,
) -> Compared:
    """What TorchInductor makes of every callable that the snippet compiled, aligned with our `graphs`, and new times
    with it and the other contestants of the options among them.

    `timing` is what was measured without them. It is given back where nobody new can be timed, which the peer's message
    or the contestant's failure then says. Contestants that were not interleaved with each other would not be
    comparable, so all are measured again; a compiled result that is wrong stays out of it. Each has an equal part of
    the budget, and no more than `options.peer_seconds`: who has not compiled by then is stopped. Times are taken in one
    of `turns`. `publish` gets what is known before others are asked, with the times where they are new.
    """
    calls = _Calls(captured, options, changes, References(captured, changes))
    others = [name for name in dict.fromkeys(options.contestants) if name not in ALWAYS]
    asked = ["peer"] * options.peer + sorted(others, key=is_foreign)
    settle = partial(_settled, calls, is_compiled_wrong=is_compiled_wrong, budget=budget, turns=turns or TimingTurns())
    peer = Peer(mode=options.peer_mode or options.mode)
    entered: list[_Contestant] = []
    for position, name in enumerate(asked):
        part = budget.share(1 / (len(asked) - position)) if position + 1 < len(asked) else budget
        one = _Contestant(name)
        if _is_unguarded(name, calls) and entered and not any(_is_unguarded(former.name, calls) for former in entered):
            peer, timing = settle(peer, timing, entered)
        asking = f"{one.title} was started, and has not returned."
        # Of whoever ends the process, this is the last that a report has.
        row = ContestantOutcome(name=name, failure=asking)
        so_far = {"contestants": [*_outcomes(entered, timing), row], "message": peer.message or asking}
        publish(peer.model_copy(update=so_far), timing)
        entered.append(one)
        if name == "peer":
            one.on_generated = lambda one=one, so_far=peer: publish(_told(so_far, one, calls, graphs), None)  # type: ignore[misc]
        _enter(one, calls, part.within(options.peer_seconds))
        if name == "peer":
            peer = _told(peer, one, calls, graphs)
            publish(peer, None)
    unguarded = [one for one in entered if _is_unguarded(one.name, calls) and one.has_times]
    if unguarded:
        names = " and ".join(one.title for one in unguarded)
        message = f"{names} compiled, and did not return from being checked and timed."
        publish(peer.model_copy(update={"message": message, "contestants": _outcomes(entered, timing)}), timing)
    peer, timing = settle(peer, timing, entered)
    calls.references.forget()
    if not options.peer and peer.message is None:
        peer = peer.model_copy(update={"message": "It was not asked."})
    wrong = [found for one in entered if one.name == "peer" for found in one.wrong]
    explored = [found for one in entered if one.name == "peer" for found in one.explored]
    return Compared(peer, timing, wrong, added_up(found.phases for found in explored))


def _is_unguarded(name: str, calls: _Calls) -> bool:
    """Whether it may end the process, which cannot be found out beforehand."""
    return is_foreign(name) and calls.captured.device.type != "cpu"


def _settled(
    calls: _Calls,
    peer: Peer,
    timing: TimingResult | None,
    entered: Sequence[_Contestant],
    is_compiled_wrong: bool,
    budget: Budget,
    turns: TimingTurns,
) -> tuple[Peer, TimingResult | None]:
    """With errors and times of all that have entered."""
    functions = {one.name: one.functions for one in entered if len(one.functions) == len(calls.entries)}
    if functions:
        errors, seeds = errors_of_calls(calls.references, functions, calls.options.seed, budget)
        peer = peer.model_copy(update={"errors": errors, "seeds": seeds})
    racing = [one for one in entered if one.has_times]
    if timing is not None and racing and calls.entries and calls.options.timing.enabled:
        try:
            with turns.turn():
                timing = _raced(calls, timing, racing, is_compiled_wrong, budget)
        except OutOfTime:
            late = "It was not timed: one call of each takes longer than the remaining time."
            if late not in (peer.message or ""):
                peer = peer.model_copy(update={"message": " ".join(filter(None, [peer.message, late]))})
    return peer.model_copy(update={"contestants": _outcomes(entered, timing)}), timing


def _enter(one: _Contestant, calls: _Calls, budget: Budget) -> None:
    """Compile every entry, and check the results. What the peer generated is kept where it is not built in time."""
    limit = budget.left
    if is_foreign(one.name) and calls.captured.device.type == "cpu":
        ended = ends_a_process(lambda: _twice(one, calls), limit)
        if ended is not None:
            one.failure = f"{one.title} {ended}. It was not tried again, and the others are not affected."
            return
    for position, entry in enumerate(calls.entries):
        heard = ExploredPeer()
        one.explored.append(heard)
        try:
            with budget.stopping(), calls.changes.in_force():
                function, found = _make(one, entry, calls, Recording(heard.modules, on_generated=one.on_generated))
        except OutOfTime:
            message = f"{one.title} had not compiled {entry.name} after the {in_seconds(limit)} that were left for it"
            one.failure = f"{message}: allow more time (`max_seconds`, `peer_seconds`)."
            return
        except (Exception, SystemExit) as error:  # its failure is a finding, not a failure of ours
            one.failure = _failure(one, entry, error)
            return
        one.functions.append(function)
        one.explored[-1] = found
        unchecked = _check(one, position, calls, budget)
        told = " ".join(sentence for sentence in (found.message, unchecked) if sentence)
        one.messages.append(f"{entry.name}: {told}" if len(calls.entries) > 1 else told)


def _twice(one: _Contestant, calls: _Calls) -> None:
    """What somebody does to the process shows in the first calls."""
    for entry in calls.entries:
        with calls.changes.in_force():
            function, _ = _make(one, entry, calls, Recording())
            args, kwargs = entry.copy_arguments()
            function(*args, **kwargs)


def _make(one: _Contestant, entry: EntryCall, calls: _Calls, recording: Recording) -> Made:
    args, kwargs = entry.copy_arguments()
    device = calls.captured.device
    if one.name == "peer":
        mode = calls.options.peer_mode or calls.options.mode
        with_backward = any(graph.phase == "backward" for graph in calls.captured.graphs)
        return explore_peer(entry.eager, args, kwargs, device, mode, with_backward=with_backward, recording=recording)
    with compiling_quickly(device):
        started = perf_counter()
        function = compiled_in_state(entry.eager, maker_of(one.name))
        function(*args, **kwargs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return function, ExploredPeer(compile_s=perf_counter() - started)


def _failure(one: _Contestant, entry: EntryCall, error: BaseException) -> str:
    """The error's own words, without the advice of Dynamo that follows them."""
    if isinstance(error, UnknownContestant):
        return str(error)
    inner = getattr(error, "inner_exception", None) or error
    return f"{one.title} failed on {entry.name}: {type(inner).__name__}: {str(inner).strip().splitlines()[0]}"


def _check(one: _Contestant, position: int, calls: _Calls, budget: Budget) -> str:
    """Note what is wrong with the results and gradients; gives why they were not checked, if they were not."""
    if any(map(is_random, graphs_of(calls.entries[position], calls.captured))):
        return "Its results were not checked: random numbers are drawn, and eager draws others."
    try:
        with budget.stopping():
            call = calls.references.of(position).judged(one.functions[-1])
    except OutOfTime:
        return "Its results were not checked: that takes longer than the remaining time."
    except Exception as error:  # of the run in float64, not of the contestant
        reason = str(error) if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
        return f"Its results were not checked: {reason}."
    found = checked_call(call, "peer" if one.name == "peer" else "compiled")
    one.wrong += found.wrong
    one.error = largest([one.error, found.compiled_error])
    return ""


def _told(peer: Peer, one: _Contestant, calls: _Calls, graphs: Sequence[Graph]) -> Peer:
    """The peer as the report has it. What it made of earlier entries is told even where it failed on a later one."""
    translation = Translation(graphs, calls.captured.graphs)
    for entry, explored in zip(calls.entries, one.explored, strict=False):
        # Of an entry that ran the graphs of another, both compilers' kernels are told there.
        for module in explored.modules if entry.has_compiled or not entry.graphs else ():
            translation.add(module)
    return peer.model_copy(
        update={
            "kernels": translation.kernels,
            "graphs": translation.graphs,
            "refusals": translation.refusals,
            "alignment": aligned(graphs, translation.kernels, translation.refusals, peer.name),
            "message": " ".join([*one.messages, *([one.failure] if one.failure else [])]) or None,
        }
    )


def _raced(
    calls: _Calls, timing: TimingResult, racing: Sequence[_Contestant], is_compiled_wrong: bool, budget: Budget
) -> TimingResult:
    """All contestants in turn. Raises `OutOfTime` where one call of each takes longer than the budget."""
    entries = calls.entries
    contest: dict[str, Callable[[], object]] = {
        "eager": call_of_all(entries, [entry.eager for entry in entries]),
        "compiled": call_of_all(entries, [entry.compiled for entry in entries]),
        **{one.name: call_of_all(entries, one.functions) for one in racing},
    }
    if is_compiled_wrong:
        del contest["compiled"]
    device, changes = calls.captured.device, calls.changes
    with budget.stopping():
        raced = measure(contest, device, calls.options.timing, budget.share(PLANNED), changes)
    known: Mapping[str, float | None] = {
        **{one.name: one.compile_s for one in timing.contestants},
        **{one.name: one.seconds for one in racing},
    }
    for measured in raced.contestants:
        measured.compile_s = known.get(measured.name)
    return raced


def _outcomes(entered: Sequence[_Contestant], timing: TimingResult | None) -> list[ContestantOutcome]:
    """One row for everybody; the errors of eager and ours are the report's to add."""
    times = {one.name: one for one in timing.contestants} if timing is not None else {}
    rows = [
        ContestantOutcome(name=name, median_ms=times[name].median_ms, compile_s=times[name].compile_s)
        for name in ("eager", "compiled")
        if name in times
    ]
    for one in entered:
        measured = times.get(one.name)
        wrong = f"Its result is wrong: {one.wrong[0].message}" if one.wrong else None
        rows.append(
            ContestantOutcome(
                name=one.name,
                median_ms=measured.median_ms if measured else None,
                compile_s=one.seconds if one.failure is None else None,
                max_error=finite(one.error),
                failure=one.failure or wrong,
            )
        )
    return rows
