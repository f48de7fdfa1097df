"""How the benchmark of times tells one launch from the next, and when it calls two runs the same."""

import pytest

from bench.agreement import Run, held_launches, pairs, ratio_pairs
from compiler.report import Contestant
from compiler.runtime.timing.measure import Samples


def test_a_launch_is_what_ran_between_a_hold_and_the_next_overwriting_of_the_cache() -> None:
    events = [
        ("Memset (Device)", 0.0, 9.0), ("spin_kernel", 10.0, 20.0), ("Memset (Device)", 21.0, 22.0),
        ("ours", 23.0, 30.0), ("Memset (Device)", 33.0, 40.0), ("spin_kernel", 41.0, 50.0), ("ours", 51.0, 57.0),
    ]  # fmt: skip
    assert held_launches(events[::-1]) == [9.0, 6.0]


@pytest.mark.parametrize(("second", "is_within"), [(1.02, True), (1.3, False)])
def test_two_runs_are_held_against_their_spread(second: float, is_within: bool) -> None:
    runs = [
        Run(calls={}, kernels={"k": Samples(tuple(at * one for one in (0.96, 1.0, 1.0, 1.04)))}) for at in (1.0, second)
    ]
    (pair,) = pairs("program", runs, lambda run: run.kernels)
    assert pair["is_within_spread"] == is_within


def run_of(compiled: float, factor: float) -> Run:
    """Eager takes 1 ms."""
    calls = {
        name: Contestant(
            name=name, samples_ms=[median] * 9, median_ms=median, low_ms=median, high_ms=median, ratio_factor=factor,
            differs_from_eager=max(median, 1 / median) > factor,
        )
        for name, median in (("eager", 1.0), ("compiled", compiled))
    }  # fmt: skip
    return Run(calls, {})


@pytest.mark.parametrize(
    ("factor", "is_within", "is_contradicted"), [(1.02, False, True), (1.08, False, False), (1.2, True, False)]
)
def test_a_verdict_that_another_run_contradicts_is_counted(
    factor: float, is_within: bool, is_contradicted: bool
) -> None:
    (pair,) = ratio_pairs("program", [run_of(0.95, factor), run_of(1.05, factor)])
    assert (pair["is_within_spread"], pair["is_contradicted"]) == (is_within, is_contradicted)
