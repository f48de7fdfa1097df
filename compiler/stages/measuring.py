"""How long calls and kernels take: eager and compiled in turn, then each kernel alone.

A wrong result has no speed, and is not timed. Kernels and calls are timed in different moments: where the machine was
busy in one of them, both say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from compiler.budget import PLANNED, OutOfTime
from compiler.capture.captured import EntryCall
from compiler.capture.program.output import silenced
from compiler.capture.torch_state import with_default_dtype
from compiler.compile import Built
from compiler.defects import message_of
from compiler.present import present_replay
from compiler.runtime.timing.kernel_times import KernelTimes, beside_calls, measure_kernels, note_times
from compiler.runtime.trial import RunsCounted, call_of_all, measure_entries
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Graphs, Timed, Work
from compiler.stages.shares import CALLS_UNTIMED, OF_CALLS, kernels_left_out, shared_out

NOT_REPEATED = "The calls were not timed: made again, one of them raises an error in eager mode too: {}."


def measure(exploration: Exploration, graphs: Graphs[Built]) -> Graphs[Built]:
    """Eager and compiled, interleaved."""
    with exploration.turns.turn():
        exploration.remark(_measure(exploration, graphs))
    return graphs


def _measure(exploration: Exploration, graphs: Graphs[Built]) -> str | None:
    report, is_wrong = exploration.report, exploration.is_wrong
    graphs.withhold_times(report)
    budget = exploration.share_for_times.share(OF_CALLS)
    if not graphs.are_whole:
        return "not every graph was compiled, so eager and compiled were not timed against each other"
    entries, timing = graphs.capture.timed_entries, exploration.options.timing
    if not entries:
        return "no compiled call returned, so there is nothing to time"
    runs = RunsCounted(graphs.capture)
    try:
        with silenced():
            expected = 2 * graphs.call_seconds
            report.timing = measure_entries(
                runs.of(entries), exploration.device, timing, is_wrong, budget, expected, exploration.changes
            )
    except OutOfTime:
        exploration.note(CALLS_UNTIMED)
    except Exception as error:
        # What an earlier call left, such as an empty queue, is the snippet's own; all else is ours to mend.
        if not _eager_raises(entries):
            raise
        exploration.note(NOT_REPEATED.format(message_of(error)))
    if report.timing is not None and not is_wrong and (why := runs.why_no_times()) is not None:
        report.timing = None
        exploration.note(why)
    for work in graphs.withhold_times(report):
        present_replay(work.compilation, work.report)
    return "the compiled calls were not timed: their results are wrong" if is_wrong else None


def _eager_raises(entries: Sequence[EntryCall]) -> bool:
    try:
        with silenced():
            call_of_all(entries, [entry.eager for entry in entries])()
    except Exception:
        return True
    return False


def profile(exploration: Exploration, graphs: Graphs[Built]) -> Timed:
    """Each kernel alone, and one call as torch's profiler records it, if asked for."""
    right = graphs.withhold_times(exploration.report)
    timed = Timed(graphs)
    with exploration.turns.turn():
        timed = _with_kernels(exploration, timed, right)
        if _disturbed_beside_calls(exploration, timed) is not None:
            timed = _with_kernels(exploration, timed, right)
    note_times_of_kernels(exploration, timed)
    _note_left_out(exploration, right)
    if exploration.options.trace:
        with exploration.turns.turn(), silenced():
            _record(exploration, graphs, right)
    return timed


def _with_kernels(exploration: Exploration, timed: Timed, right: list[Work[Built]]) -> Timed:
    """Each kernel alone; the graphs share what one of them would have."""
    options = exploration.options.timing
    timing = options.model_copy(update={"max_seconds": options.max_seconds / max(len(right), 1)})
    found: dict[str, KernelTimes | None] = dict(timed.kernels)
    for work, share in shared_out(exploration.share_for_times, right):
        with suppress(OutOfTime), share.stopping(), with_default_dtype(work.captured.default_dtype):
            times = measure_kernels(work.captured, work.compilation, timing, share.share(PLANNED))
            found[work.report.name] = times
    return Timed(timed.graphs, {name: times for name, times in found.items() if times is not None})


def _disturbed_beside_calls(exploration: Exploration, timed: Timed) -> str | None:
    names = [work.report.name for work in timed.graphs.in_timed_calls]
    measured = {name: timed.kernels[name] for name in names if name in timed.kernels}
    return beside_calls(measured, exploration.report.timing, exploration.device.type)


def note_times_of_kernels(exploration: Exploration, timed: Timed) -> None:
    """Say so where they do not fit the calls that were raced last, whose times are the report's."""
    why = _disturbed_beside_calls(exploration, timed)
    of_calls = {work.report.name for work in timed.graphs.in_timed_calls}
    for work in timed.graphs.work:
        if (times := timed.kernels.get(work.report.name)) is not None:
            peak_of = work.compilation.model if work.compilation.runs_on.type == "cuda" else None
            note_times(work.report, times, why if work.report.name in of_calls else None, peak_of)


def _note_left_out(exploration: Exploration, right: list[Work[Built]]) -> None:
    if exploration.options.max_seconds is not None:
        for sentence in (kernels_left_out(work.report) for work in right if work.captured.inputs is not None):
            if sentence is not None:
                exploration.note(sentence)


def _record(exploration: Exploration, graphs: Graphs[Built], right: list[Work[Built]]) -> None:
    """What the profiler cannot record is told, and takes nothing from what was measured."""
    from compiler.runtime.timing.tracing import call_of_graph, recorded

    entries = graphs.capture.timed_entries
    calls = [("eager", call_of_all(entries, [entry.eager for entry in entries]))]
    found = ((work.report.name, call_of_graph(work.captured, work.compilation, work.report)) for work in right)
    calls += [(name, call) for name, call in found if call is not None]
    budget = exploration.share_for_times
    for name, call in calls:
        try:
            with budget.stopping(), exploration.changes.in_force():
                exploration.report.trace += recorded(call, name, exploration.device)
        except OutOfTime:
            exploration.note(f"{name} was not recorded: there was no time left.")
        except Exception as error:
            exploration.note(f"{name} was not recorded: {type(error).__name__}: {error}")
