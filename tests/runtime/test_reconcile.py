"""Kernels' times and the time of their call: where they do not add up, no figure is derived from them."""

from __future__ import annotations

import pytest

from compiler import pipeline
from compiler.options import Options, Timing
from compiler.report import Report
from compiler.runtime import trial
from compiler.runtime.measure import Samples
from compiler.runtime.reconcile import disturbance
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
        ([samples(2.9, 3.0, 3.1), samples(1.0, 6.0, 20.0)], True, False),  # a wide spread holds the true time
        ([samples(0.1, 0.1, 0.1)], True, True),  # busy while the call was timed
        ([samples(0.1, 0.1, 0.1)], False, False),  # the rest is a library's
        ([], True, False),
    ],
)
def test_times_must_add_up_within_their_spread(kernels: list[Samples], is_whole: bool, is_disturbed: bool) -> None:
    assert (disturbance(kernels, CALL, is_whole, "cpu") is not None) == is_disturbed


def test_small_calls_have_their_launches_beside_the_kernels() -> None:
    assert disturbance([samples(0.001, 0.001, 0.001)], samples(0.015, 0.016, 0.018), True, "cpu") is None


def test_a_cold_cache_makes_kernels_alone_longer_on_a_gpu() -> None:
    assert disturbance([samples(12.0, 12.0, 12.0)], CALL, True, "cuda") is None
    assert disturbance([samples(30.0, 30.0, 30.0)], CALL, True, "cuda") is not None


def explored(monkeypatch: pytest.MonkeyPatch, tries: list[float]) -> tuple[Report, list[float]]:
    """An exploration whose only kernel takes those milliseconds, one for each time that it is measured; its call 6."""
    left = list(tries)

    def measure_each(calls: dict[str, object], *_: object) -> dict[str, Samples]:
        return {name: samples(6.0) if name == "call" else samples(left.pop(0)) for name in calls}

    monkeypatch.setattr(trial, "measure_each", measure_each)
    monkeypatch.setattr(pipeline, "measure_entries", lambda *_: None)
    monkeypatch.setattr(pipeline, "attach_triton", lambda *_: None)
    return pipeline.explore(SNIPPET, Options(timing=Timing(min_runs=3))), left


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
