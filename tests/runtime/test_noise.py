"""How far another run may be: what the samples show, and what is known of the device."""

from __future__ import annotations

import random
from statistics import median

import pytest
import torch

from bench.agreement import needed
from compiler.options import Timing
from compiler.runtime.timing import clocks
from compiler.runtime.timing.measure import Samples, between_runs, measure_each
from compiler.runtime.timing.noise import BetweenRuns, ratio_of, stated_spread
from compiler.runtime.timing.stopwatch import HostStopwatch


@pytest.mark.parametrize("count", [6, 20, 50])
def test_another_run_of_the_same_samples_is_within_the_spread(count: int) -> None:
    draw = random.Random(7)
    runs = [[draw.gauss(1.0, 0.05) for _ in range(count)] for _ in range(800)]
    pairs = [
        abs(median(one) - median(two)) <= max(stated_spread(one, BetweenRuns()), stated_spread(two, BetweenRuns()))
        for one, two in zip(runs[::2], runs[1::2], strict=True)
    ]
    assert sum(pairs) >= 0.95 * len(pairs)


def test_what_moves_during_a_run_is_in_the_spread() -> None:
    """Samples that follow each other are alike here, and their quartiles the same as if they were mixed."""
    moved, still = [1.0] * 8 + [1.1] * 8, [1.0, 1.1] * 8
    assert stated_spread(moved, BetweenRuns()) > 1.5 * stated_spread(still, BetweenRuns())


def test_what_runs_of_a_device_differ_by_is_added() -> None:
    steady = [2.0] * 20
    assert stated_spread(steady, BetweenRuns()) == 0.0
    assert stated_spread(steady, BetweenRuns(0.1, 0.01)) == pytest.approx(0.12)
    assert stated_spread([2.0, 2.0], BetweenRuns(0.1, 0.01)) == pytest.approx(1.0)  # a factor of 1.5


def test_a_process_that_waits_for_a_core_says_that_its_times_are_unsteady() -> None:
    busy = clocks.share_waited((100, 50), (400, 350))
    assert busy == 0.5
    cpu = torch.device("cpu")
    assert between_runs(cpu, busy).share > 1 > between_runs(cpu).share
    assert clocks.share_waited((1, 1), (1, 1)) == 0.0
    assert clocks.core_time() >= (0, 0)


@pytest.mark.parametrize(("kind", "first"), [("cuda", "ms"), ("cpu", "waits")])
def test_a_device_is_fitted_to_the_pairs_of_its_runs(kind: str, first: str) -> None:
    """They differ by 0.3 us and 1 %, or by 1 % and half of what others took beside what was left."""
    of_times, waited = (250.0, 50.0, 10.0, 1.0, 250.0, 50.0), (0.5, 0.2, 0.0, 0.1, 0.5, 0.2)
    pairs = [
        {
            "apart": 0.01 + (0.0003 * of_time if kind == "cuda" else 0.5 * share / (1 - share)),
            "of_samples": 0.0,
            "of_time": of_time,
            "waited": share,
        }
        for of_time, share in zip(of_times, waited, strict=True)
    ]
    found = needed(pairs, torch.device(kind))
    assert found["elsewhere"] == 1.0
    assert found[first] == pytest.approx(0.0003 if kind == "cuda" else 0.5)
    assert found["share"] == pytest.approx(0.01)


RUN = random.Random(11)
DRIFT = [1 + 0.2 * place / 20 for place in range(20)]


def test_what_drifts_meets_both_and_their_ratio_is_steady() -> None:
    eager = [2.0 * drift * RUN.gauss(1.0, 0.002) for drift in DRIFT]
    compiled = [1.9 * drift * RUN.gauss(1.0, 0.002) for drift in DRIFT]
    found = ratio_of(eager, compiled, BetweenRuns(0.0, 0.05, 0.01))
    assert stated_spread(compiled, BetweenRuns(0.0, 0.05, 0.01)) > 0.05 * 1.9
    assert found.value == pytest.approx(2.0 / 1.9, rel=0.01) and 1.01 < found.factor < 1.02 and found.is_clear


def test_a_ratio_is_no_surer_than_what_another_run_would_give() -> None:
    """The case of a busy machine: 1.17 times as long, each sample the same, and a spread of over 100 %."""
    eager, compiled = [0.0515] * 20, [0.0603] * 20
    assert ratio_of(eager, compiled).is_clear
    busy = between_runs(torch.device("cpu"), 0.5)
    assert not ratio_of(eager, compiled, busy).is_clear and ratio_of(eager, compiled, busy).factor > 1.17
    microseconds = BetweenRuns(ms=0.0003)
    assert not ratio_of([0.0040] * 9, [0.0041] * 9, microseconds).is_clear
    assert ratio_of([0.40] * 9, [0.41] * 9, microseconds).is_clear


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_samples_show_a_large_difference_alone(count: int) -> None:
    assert not ratio_of([2.0] * count, [1.0] * count).is_clear
    assert ratio_of([2.4] * count, [1.0] * count).is_clear and ratio_of([1.0] * count, [2.4] * count).is_clear


@pytest.mark.parametrize("count", [6, 20])
def test_another_run_of_the_same_ratio_is_within_its_factor(count: int) -> None:
    draw = random.Random(5)

    def samples() -> list[float]:
        return [draw.gauss(1.0, 0.05) for _ in range(count)]

    runs = [ratio_of(samples(), samples()) for _ in range(600)]
    pairs = zip(runs[::2], runs[1::2], strict=True)
    within = [max(a.value / b.value, b.value / a.value) <= max(a.factor, b.factor) for a, b in pairs]
    assert sum(within) >= 0.95 * len(within)


def test_what_the_stopwatch_shows_of_nothing_is_no_part_of_a_kernel() -> None:
    assert Samples((3.0, 4.0, 0.5)).less(1.0).samples_ms == (2.0, 3.0, 0.0)


def test_what_took_no_longer_than_nothing_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostStopwatch, "beside_ms", 1e6)
    timing = Timing(max_seconds=0.01)
    assert measure_each({"kernel": lambda: None}, torch.device("cpu"), timing) == {}
