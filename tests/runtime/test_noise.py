"""How far another run may be: what the samples show, and what is known of the device."""

from __future__ import annotations

import random
from statistics import median

import pytest
import torch

from bench.agreement import between_runs as fitted
from compiler.runtime.timing import clocks
from compiler.runtime.timing.measure import Samples, between_runs
from compiler.runtime.timing.noise import UNSEEN, BetweenRuns, stated_spread


@pytest.mark.parametrize("count", [6, 20, 50])
def test_another_run_of_the_same_samples_is_within_the_spread(count: int) -> None:
    draw = random.Random(7)
    runs = [[draw.gauss(1.0, 0.05) for _ in range(count)] for _ in range(800)]
    pairs = [
        abs(median(one) - median(two)) <= max(stated_spread(one, UNSEEN), stated_spread(two, UNSEEN))
        for one, two in zip(runs[::2], runs[1::2], strict=True)
    ]
    assert sum(pairs) >= 0.95 * len(pairs)


def test_what_moves_during_a_run_is_in_the_spread() -> None:
    """Samples that follow each other are alike here, and their quartiles the same as if they were mixed."""
    moved, still = [1.0] * 8 + [1.1] * 8, [1.0, 1.1] * 8
    assert stated_spread(moved, UNSEEN) > 1.5 * stated_spread(still, UNSEEN)


def test_what_runs_of_a_device_differ_by_is_added() -> None:
    steady = [2.0] * 20
    assert stated_spread(steady, UNSEEN) == 0.0
    assert stated_spread(steady, BetweenRuns(0.1, 0.01)) == pytest.approx(0.12)
    assert stated_spread([2.0, 2.0], BetweenRuns(0.1, 0.01)) == pytest.approx(1.0)  # a factor of 1.5


def test_a_process_that_waits_for_a_core_says_that_its_times_are_unsteady() -> None:
    busy = clocks.share_waited(clocks.CoreTime(100, 50), clocks.CoreTime(400, 350))
    assert busy == 0.5
    cpu = torch.device("cpu")
    assert between_runs(cpu, busy).share > 1 > 10 * between_runs(cpu).share - 1
    assert clocks.share_waited(clocks.CoreTime(1, 1), clocks.CoreTime(1, 1)) == 0.0
    assert clocks.core_time() >= clocks.CoreTime(0, 0)


def test_a_device_is_fitted_to_the_pairs_of_its_runs() -> None:
    pairs = [{"ms": [at, at + 0.0003 + 0.01 * at], "spread_of_samples_ms": 0.0} for at in (0.004, 0.02, 0.1, 1.0)]
    needed = fitted(pairs)
    assert all(abs(a - b) <= needed.ms + needed.share * max(a, b) for a, b in (pair["ms"] for pair in pairs))
    assert needed.ms <= 0.0005 and needed.share <= 0.02


def test_what_the_stopwatch_shows_of_nothing_is_no_part_of_a_kernel() -> None:
    assert Samples((3.0, 4.0, 0.5)).less(1.0).samples_ms == (2.0, 3.0, 0.0)
