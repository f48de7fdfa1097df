"""How the benchmark of times tells one launch from the next, and when it calls two runs the same."""

import pytest

from bench.agreement import Run, between_marks, pairs
from compiler.runtime.timing.measure import Samples


def test_a_launch_is_what_ran_between_its_two_marks():
    events = [
        ("fill", 0.0, 9.0), ("spin_kernel", 10.0, 20.0), ("memset", 21.0, 22.0), ("ours", 23.0, 30.0),
        ("spin_kernel", 31.0, 32.0), ("fill", 33.0, 40.0), ("spin_kernel", 41.0, 50.0), ("ours", 51.0, 57.0),
        ("spin_kernel", 58.0, 59.0),
    ]  # fmt: skip
    assert between_marks(events[::-1]) == [9.0, 6.0]


@pytest.mark.parametrize(("second", "is_within", "is_same"), [(1.02, True, True), (1.3, False, False)])
def test_two_runs_are_held_against_their_spread(second, is_within, is_same):
    runs = [
        Run(calls={}, kernels={"k": Samples(tuple(at * one for one in (0.96, 1.0, 1.0, 1.04)))}) for at in (1.0, second)
    ]
    (pair,) = pairs("program", runs, lambda run: run.kernels)
    assert (pair["is_within_spread"], pair["is_same"]) == (is_within, is_same)
