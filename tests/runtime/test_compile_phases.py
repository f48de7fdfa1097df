"""Seconds of compiling by phase: by hand from torch's counters, and of one exploration with the peer."""

from __future__ import annotations

import pytest

from compiler import compile_phases
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.report import Report
from server.compiling import compile_sentences
from server.summary import markdown

SOURCE = """
import torch

@torch.compile
def f(x):
    return torch.softmax(x.sin() * 2, -1)

f(torch.randn(8, 16))
"""
PHASES = ["capture", "lowering", "scheduling", "code generation", "build"]


@pytest.fixture(scope="module")
def report() -> Report:
    return explore(SOURCE, Options(device="cpu", peer=True, peer_seconds=600, timing=Timing(min_runs=3)))


def test_each_phase_of_ours_and_of_the_peer_is_told(report: Report) -> None:
    assert report.error is None and report.peer is not None and report.timing is not None
    assert [one.phase for one in report.compile_phases] == PHASES
    for one in report.compile_phases:
        assert one.compiled_seconds is not None and one.compiled_seconds > 0
        assert one.peer_seconds is not None and one.peer_seconds >= 0
    first_calls = {one.name: one.compile_s for one in report.timing.contestants}
    total = sum(one.peer_seconds or 0.0 for one in report.compile_phases)
    assert first_calls["peer"] is not None and 0 < total <= first_calls["peer"] + 1e-3
    stages = {stage.name: stage.ms / 1000 for stage in report.stages}
    by_phase: dict[str, float] = {one.phase: one.compiled_seconds or 0.0 for one in report.compile_phases}
    # Kernels for a CPU are compiled from the end of one stage on, while their Triton twins are assembled.
    within = stages | {"run": stages["codegen"] + stages["run"]}
    for phase, stage in zip(PHASES, ("capture", "lower", "schedule", "codegen", "run"), strict=True):
        assert by_phase[phase] <= within[stage] + 1e-3


def test_they_are_told_in_sentences(report: Report) -> None:
    ours, peer = compile_sentences(report)
    assert ours.startswith("Ours took ") and peer.startswith("TorchInductor took ")
    assert all(phase in sentence for phase in PHASES for sentence in (ours, peer))
    assert ours in markdown(report)


def test_counters_nest_and_a_phase_is_what_is_in_no_other() -> None:
    counts = {
        "_compile.compile_inner": 10.0,
        "GraphLowering.run": 1.0,
        "_recursive_post_grad_passes": 0.5,
        "GraphLowering.compile_to_module": 6.0,
        "GraphLowering.codegen": 3.5,
        "Scheduler.__init__": 0.75,
    }
    found = compile_phases.of_inductor(counts, waited=0.25)
    expected = {"capture": 2.25, "lowering": 1.5, "scheduling": 0.75, "code generation": 2.75, "build": 2.75}
    assert found == pytest.approx(expected)
    assert sum(found.values()) == pytest.approx(10.0)
    assert compile_phases.of_inductor({"GraphLowering.run": 1.0}) == {}  # nothing to divide


def test_a_phase_that_only_one_has_is_told_of_that_one() -> None:
    (lowering, build) = compile_phases.side_by_side({"build": 2.0}, {"lowering": 1.0, "build": 3.0})
    assert (lowering.compiled_seconds, lowering.peer_seconds) == (None, 1.0)
    assert (build.compiled_seconds, build.peer_seconds) == (2.0, 3.0)
    assert compile_phases.added_up([{"build": 1.0}, {"build": 2.0, "lower": 0.5}]) == {"build": 3.0, "lower": 0.5}
