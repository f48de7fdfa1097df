"""Kernels' times and the time of their call: where they do not add up, no figure is derived from them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compiler import pipeline
from compiler.capture.captured import EntryCall
from compiler.options import Options, Timing
from compiler.peer import compare
from compiler.peer.compare import Compared
from compiler.report import Contestant, Peer, Report, TimingResult
from compiler.runtime.timing import kernel_times as measuring
from compiler.runtime.timing.kernel_times import disturbance
from compiler.runtime.timing.measure import Samples
from compiler.stages import compiling
from compiler.stages import measuring as stage_of_times
from server.launches import launch_sentences
from server.summary import kernel_times, markdown

SNIPPET = """
import torch

@torch.compile
def f(x):
    return torch.softmax(x.sin() * 2, -1)

f(torch.randn(64, 256))
"""


def samples(*milliseconds: float) -> Samples:
    return Samples(milliseconds)


CALL = samples(5.8, 6.0, 6.3)


@pytest.mark.parametrize(
    ("kernels", "is_whole", "is_disturbed"),
    [
        ([samples(2.9, 3.0, 3.1), samples(2.7, 2.8, 2.9)], True, False),
        ([samples(2.9, 3.0, 3.1), samples(99.0, 100.0, 101.0)], True, True),  # busy while the second was timed
        ([samples(2.9, 3.0, 3.1), samples(1.0, 6.0, 20.0)], True, True),  # of a wide spread, the medians are shown
        ([samples(2.9, 3.0, 3.1), samples(1.0, 3.5, 20.0)], True, False),  # and these add up
        ([samples(0.1, 0.1, 0.1)], True, True),  # busy while the call was timed
        ([samples(0.1, 0.1, 0.1)], False, False),  # the rest is a library's
        ([], True, False),
    ],
)
def test_medians_must_add_up(kernels: list[Samples], is_whole: bool, is_disturbed: bool) -> None:
    assert (disturbance(kernels, CALL, is_whole, "cpu") is not None) == is_disturbed


def test_a_wide_spread_of_the_call_is_no_excuse() -> None:
    told = disturbance([samples(6.0, 6.1), samples(1.9, 1.9)], samples(5.3, 5.5, 9.0), False, "cpu")
    assert told is not None and "7.95 ms one by one" in told and "5.5 ms" in told


def test_small_calls_have_their_launches_beside_the_kernels() -> None:
    assert disturbance([samples(0.001, 0.001, 0.001)], samples(0.015, 0.016, 0.018), True, "cpu") is None


def test_a_cold_cache_makes_kernels_alone_longer_on_a_gpu() -> None:
    assert disturbance([samples(12.0, 12.0, 12.0)], CALL, True, "cuda") is None
    assert disturbance([samples(30.0, 30.0, 30.0)], CALL, True, "cuda") is not None


def raced(milliseconds: float) -> TimingResult:
    samples = [milliseconds] * 3
    contestants = [
        Contestant(name=name, samples_ms=samples, median_ms=milliseconds, low_ms=milliseconds, high_ms=milliseconds)
        for name in ("eager", "compiled")
    ]
    return TimingResult(method="by hand", device="cpu", cold_l2=False, contestants=contestants)


def explored(
    monkeypatch: pytest.MonkeyPatch,
    tries: list[float],
    compiled_ms: float | None = None,
    compiled_beside_peer_ms: float | None = None,
) -> tuple[Report, list[float]]:
    """An exploration whose only kernel takes those milliseconds, one for each time that it is measured; its call 6.
    Where the compiled call is raced against eager, it takes `compiled_ms`, and where it is raced against the peer too,
    `compiled_beside_peer_ms`."""
    left = list(tries)

    def measure_each(calls: dict[str, object], *_: object) -> dict[str, Samples]:
        return {name: samples(6.0) if name == "call" else samples(left.pop(0)) for name in calls}

    def race(entries: Sequence[EntryCall], *_: object) -> TimingResult | None:
        for entry in entries:
            entry.compiled(*entry.args, **entry.kwargs)
        return raced(compiled_ms) if compiled_ms is not None else None

    def race_with_peer(*_: object) -> Compared:
        assert compiled_beside_peer_ms is not None
        return Compared(Peer(), raced(compiled_beside_peer_ms))

    monkeypatch.setattr(measuring, "measure_each", measure_each)
    monkeypatch.setattr(stage_of_times, "measure_entries", race)
    monkeypatch.setattr(compiling, "attach_triton", lambda *_: None)
    monkeypatch.setattr(compare, "compare_with_peer", race_with_peer)
    options = Options(timing=Timing(min_runs=3), peer=compiled_beside_peer_ms is not None)
    return pipeline.explore(SNIPPET, options), left


def test_times_that_do_not_add_up_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report, left = explored(monkeypatch, [100.0, 5.0, 7.0])
    (graph,) = report.graphs
    assert left == [7.0]
    assert graph.disturbed is None
    assert graph.call_us == 6000
    (kernel,) = graph.kernels
    assert kernel.measured_us == 5000
    assert kernel.gb_per_s == pytest.approx(kernel.bytes / 5000 / 1e3, abs=1e-3)


def test_times_that_never_add_up_are_marked_everywhere_and_give_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    report, left = explored(monkeypatch, [100.0, 90.0, 80.0])
    (graph,) = report.graphs
    assert left == []
    assert graph.disturbed is not None
    assert "80 ms one by one" in graph.disturbed
    (kernel,) = graph.kernels
    assert (kernel.measured_us, kernel.gb_per_s, kernel.percent_of_peak) == (80000, None, None)
    assert any("not to be relied on" in sentence for sentence in launch_sentences(graph))
    assert "busy machine" in " ".join(kernel_times(kernel, report.environment, is_disturbed=True))
    assert "not to be relied on" in markdown(report)


@pytest.mark.parametrize(
    ("tries", "compiled_ms", "is_disturbed"),
    [
        ([6.0], 5.5, False),
        ([6.0], 60.0, False),  # a call does more than to launch kernels
        ([7.0, 6.0], 5.2, False),  # the second time they are no longer than the call
        ([7.5, 7.5], 5.5, True),
        ([1.9, 1.9], 2.0, True),  # the kernel fits, but not the call of its graph
    ],
)
def test_kernels_are_no_longer_than_the_call_that_was_raced(
    monkeypatch: pytest.MonkeyPatch, tries: list[float], compiled_ms: float, is_disturbed: bool
) -> None:
    report, left = explored(monkeypatch, tries, compiled_ms)
    (graph,) = report.graphs
    (kernel,) = graph.kernels
    assert left == []
    assert (graph.disturbed is not None) == is_disturbed
    assert (kernel.gb_per_s is None) == is_disturbed


def test_the_call_of_a_graph_that_does_not_fit_is_not_said_to_be_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = explored(monkeypatch, [1.9, 1.9], 2.0)
    told = report.graphs[0].disturbed
    assert told is not None and told.startswith("The graphs took 6 ms one by one, the call that runs them 2 ms:")


@pytest.mark.parametrize(
    ("tries", "before_ms", "after_ms", "told"),
    [([7.5, 7.5], 5.5, 8.2, None), ([7.5], 8.2, 5.5, "that runs them 5.5 ms")],
)
def test_what_is_said_is_of_the_race_that_is_shown(
    monkeypatch: pytest.MonkeyPatch, tries: list[float], before_ms: float, after_ms: float, told: str | None
) -> None:
    report, _ = explored(monkeypatch, tries, before_ms, after_ms)
    (graph,) = report.graphs
    assert (graph.disturbed is not None) == (told is not None)
    assert told is None or told in str(graph.disturbed)
    assert report.error is None
    assert (graph.kernels[0].gb_per_s is None) == (told is not None)
