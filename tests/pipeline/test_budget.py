"""An exploration ends in time, with all that it found: what does not fit is left out and named, least needed first."""

from __future__ import annotations

import math
import time

import pytest
import torch

from compiler import pipeline
from compiler.budget import UNLIMITED, Budget, OutOfTime, in_seconds, unstopped
from compiler.capture.captured import CapturedGraph
from compiler.compile import Planned
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report
from compiler.runtime.timing.measure import measure, measure_each, take_samples
from compiler.runtime.timing.stopwatch import Call, HostStopwatch
from compiler.stages.compiling import codegen
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Graphs

CPU = torch.device("cpu")

SNIPPET = """
import torch

@torch.compile
def f(x):
    return torch.softmax(x.sin() * 2, -1)

f(torch.randn(32, 64))
"""


class Clock:
    """A clock that only the calls under test move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def call_of(self, seconds: float) -> Call:
        def call() -> None:
            self.now += seconds

        return call


class FakeStopwatch(HostStopwatch):
    """Times calls on that clock, each once."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def prepare(self, call: Call) -> None:
        call()

    def sample(self, call: Call) -> float:
        before = self.clock()
        call()
        return 1e3 * (self.clock() - before)


def test_a_budget_is_shared_out_and_never_grows() -> None:
    clock = Clock()
    budget = Budget(clock=clock).within(10)
    assert budget.left == 10
    share = budget.share(0.5)
    assert (share.left, share.within(60).left, share.within(None).left) == (5, 5, 5)
    clock.now += 4
    assert (budget.left, share.left) == (6, 1)
    assert share.fits(1)
    assert not share.fits(1.5)
    clock.now += 4
    assert (budget.left, share.left, share.is_spent) == (2, 0, True)


def test_without_a_limit_everything_fits() -> None:
    assert UNLIMITED.share(0.1).left == math.inf
    assert UNLIMITED.fits(1e9)
    assert UNLIMITED.within(None) is UNLIMITED


def test_what_runs_within_is_stopped_even_where_it_catches_exceptions() -> None:
    with pytest.raises(OutOfTime), Budget().within(0.05).stopping():
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # as libraries do
                continue
    with Budget().within(60).stopping():
        pass
    time.sleep(0.01)  # nothing rings any more


def test_a_short_duration_keeps_two_digits() -> None:
    assert [in_seconds(seconds) for seconds in (0.0123, 1.25, 48.6)] == ["0.012 s", "1.2 s", "49 s"]


@pytest.mark.parametrize(
    ("seconds", "max_seconds", "rounds"),
    [
        (1000, 600, 20),  # all of them
        (1000, 1, 4),  # what samples may take is up, but a few belong to any figure
        (45, 1, 2),
        (11, 1, 1),  # one call of each was made: they are the samples
    ],
)
def test_samples_shrink_to_the_budget_down_to_one_call(seconds: float, max_seconds: float, rounds: int) -> None:
    clock = Clock()
    calls = {"eager": clock.call_of(8), "compiled": clock.call_of(2)}
    timing = Timing.model_construct(min_runs=20, max_seconds=max_seconds)
    taken = take_samples(calls, FakeStopwatch(clock), CPU, timing, Budget(clock=clock).within(seconds))
    assert {name: len(found.samples_ms) for name, found in taken.items()} == {"eager": rounds, "compiled": rounds}
    assert taken["eager"].median_ms == pytest.approx(8000)
    assert taken["compiled"].median_ms == pytest.approx(2000)


def test_kernels_for_which_there_is_no_time_have_no_figure() -> None:
    clock = Clock()
    calls = {name: clock.call_of(30) for name in "abc"}
    assert set(measure_each(calls, CPU, Timing(), Budget(clock=clock).within(50))) == {"a", "b"}
    assert measure_each(calls, CPU, Timing(), Budget(clock=clock).within(0)) == {}


def test_one_sample_alone_proves_no_small_difference() -> None:
    clock = Clock()
    budget = Budget(clock=clock).within(1)
    calls = {"eager": clock.call_of(1.2), "compiled": clock.call_of(1), "peer": clock.call_of(0.1)}
    result = measure(calls, CPU, Timing(), budget)
    assert [len(one.samples_ms) for one in result.contestants] == [1, 1, 1]
    assert [one.differs_from_eager for one in result.contestants] == [None, False, True]


def notes(report: Report) -> str:
    return " ".join(note.message for note in report.notes)


def test_a_call_that_takes_long_loses_its_checks_and_times_but_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CapturedGraph, "seconds_for_values", 1000.0)
    report = explore(SNIPPET, Options(max_seconds=600))
    (graph,) = report.graphs
    assert report.status == "ok"
    assert graph.decisions
    assert graph.kernels[0].source
    assert report.summary.kernels == 1
    assert report.summary.compiled_error is None
    assert "were not run: its first call took" in notes(report)
    assert "max_seconds" in notes(report)


def test_the_comparison_with_float64_is_left_out_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CapturedGraph, "seconds_for_values", 100.0)
    report = explore(SNIPPET, Options(max_seconds=600, timing=Timing(enabled=False)))
    assert report.summary.compiled_error is None
    assert "was not compared with float64" in notes(report)
    assert "were not run" not in notes(report)


def test_when_the_time_is_up_the_stages_that_are_left_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(exploration: Exploration, graphs: Graphs[Planned]) -> Graphs[Planned]:
        codegen(exploration, graphs)
        exploration.budget = exploration.budget.within(0)
        return graphs

    monkeypatch.setattr(pipeline, "codegen", slow)
    report = explore(SNIPPET, Options(max_seconds=600, peer=True))
    stages = {stage.name: stage for stage in report.stages}
    assert report.graphs[0].kernels
    for name in ("run", "measure", "profile", "compare", "emulate"):
        assert stages[name].status == "skipped"
        assert "of the exploration were up" in (stages[name].message or "")


def test_a_snippet_that_never_ends_keeps_the_graphs_before() -> None:
    # The snippet brings the end of its time forward itself: how long its graph takes before is the machine's affair.
    # It comes again, as what is raised within a finaliser is lost. The loop calls nothing compiled: what is raised in a
    # guard is lost too, and Dynamo compiles anew.
    ends_soon = "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.01, 0.05)\nwhile True: torch.randn(32, 64)\n"
    report = explore(f"{SNIPPET}\n{ends_soon}", Options(max_seconds=600, timing=Timing(enabled=False)))
    assert report.status == "timeout"
    assert report.error is not None
    assert (report.error.type, report.error.line, report.error.stage) == ("TimeLimit", 12, "capture")
    assert report.graphs[0].kernels
    assert report.summary.kernels == 1


def test_what_must_be_whole_is_not_stopped_but_after_it() -> None:
    done = []
    with pytest.raises(OutOfTime), Budget().within(0.01).stopping():
        with unstopped():
            time.sleep(0.1)
            done.append("whole")
        while True:
            time.sleep(0.01)
    assert done == ["whole"]
