"""How times are taken: order, warm-up, repeats, statistics. No test asserts a duration."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from compiler.options import Timing
from compiler.report import Contestant
from compiler.runtime.timing import clocks
from compiler.runtime.timing.measure import (
    WARMUP_CALLS,
    Samples,
    is_measurable_difference,
    measure,
    measure_each,
    order_of_round,
    take_samples,
)
from compiler.runtime.timing.noise import percentile
from compiler.runtime.timing.stopwatch import Call, HostStopwatch

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


class CountingStopwatch(HostStopwatch):
    """Notes which call is sampled, and tells a time that was chosen beforehand."""

    def __init__(self) -> None:
        super().__init__()
        self.sampled: list[Call] = []

    def sample(self, call: Call) -> float:
        self.sampled.append(call)
        return float(len(self.sampled))


def test_every_round_samples_each_contestant_once_and_orders_change() -> None:
    calls: dict[str, Call] = {name: lambda: None for name in ("eager", "compiled", "peer")}
    names = {call: name for name, call in calls.items()}
    watch = CountingStopwatch()
    take_samples(calls, watch, CPU, Timing(min_runs=6))
    rounds = [[names[call] for call in watch.sampled[start : start + 3]] for start in range(0, 18, 3)]
    assert all(sorted(one) == ["compiled", "eager", "peer"] for one in rounds)
    assert Counter(one[0] for one in rounds) == {"eager": 2, "compiled": 2, "peer": 2}
    assert len({tuple(one) for one in rounds}) == 6


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_an_order_holds_every_contestant(count: int) -> None:
    names = [str(number) for number in range(count)]
    for turn in range(12):
        assert sorted(order_of_round(names, turn)) == names


def test_calls_are_warm_before_they_are_sampled() -> None:
    seen: list[int] = []
    count = 0

    def call() -> None:
        nonlocal count
        count += 1

    class Watch(CountingStopwatch):
        def prepare(self, call: Call) -> None:
            seen.append(count)

    take_samples({"eager": call}, Watch(), CPU, Timing(min_runs=3, max_seconds=60))
    assert seen == [WARMUP_CALLS]
    # What takes long beside the time that there is for samples is warm after one call.
    take_samples({"eager": call}, Watch(), CPU, Timing(min_runs=3, max_seconds=1e-9))
    assert seen[1] - seen[0] == 1


def test_every_sample_is_kept_with_its_median_and_quartiles() -> None:
    x = torch.randn(1000)
    timing = Timing(min_runs=7, max_seconds=60)
    result = measure({"eager": lambda: x.sin(), "compiled": lambda: x.cos()}, CPU, timing)
    assert [one.name for one in result.contestants] == ["eager", "compiled"]
    for one in result.contestants:
        assert len(one.samples_ms) == 7
        assert 0 < one.low_ms <= one.median_ms <= one.high_ms
    assert not result.cold_l2
    assert "interleaved" in result.method
    assert [type(one.differs_from_eager) for one in result.contestants] == [type(None), bool]
    assert "mallopt" in result.method


def test_sampling_stops_when_the_time_is_up_but_not_before_four_rounds() -> None:
    result = measure({"eager": lambda: None}, CPU, Timing(min_runs=1000, max_seconds=1e-9))
    assert len(result.contestants[0].samples_ms) == 4


def test_single_kernels_are_timed_by_name() -> None:
    x = torch.randn(100)
    times = measure_each({"sin": x.sin, "cos": x.cos}, CPU, Timing(min_runs=3))
    assert set(times) == {"sin", "cos"}
    assert all(time.median_ms > 0 for time in times.values())


FAULTS = """
import resource
import torch
from compiler.runtime.host.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(16 << 20).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

is_kept = keep_freed_memory()
# What is laid into a freed block leaves no room for the next: that lies beside it, once or a few times.
print(is_kept, any(faults() < 1000 for _ in range(40)))
"""


def test_freed_memory_is_kept_so_that_fresh_outputs_do_not_fault() -> None:
    """In a process of its own: the heap of one that has run many tests may have met a mapping, and grow no more."""
    told = subprocess.run([sys.executable, "-c", FAULTS], cwd=ROOT, capture_output=True, text=True, check=True)
    is_kept, is_without_faults = told.stdout.split()
    if is_kept == "False":
        pytest.skip("this C library has no mallopt")
    assert is_without_faults == "True"  # 64 MiB are 16384 pages


def contestant(low: float, median: float, high: float) -> Contestant:
    return Contestant(
        name="eager",
        samples_ms=[low, low, median, high, high],
        median_ms=median,
        low_ms=low,
        high_ms=high,
    )


def test_overlapping_ranges_are_no_measurable_difference() -> None:
    assert not is_measurable_difference(contestant(0.9, 1.0, 1.2), contestant(1.1, 1.3, 1.4))
    assert not is_measurable_difference(contestant(1.0, 1.0, 1.0), contestant(1.01, 1.01, 1.01))
    assert is_measurable_difference(contestant(0.9, 1.0, 1.1), contestant(1.2, 1.3, 1.4))
    assert is_measurable_difference(Samples((2.0,) * 4), Samples((1.0,) * 4))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_samples_show_a_large_difference_alone(count: int) -> None:
    assert not is_measurable_difference(Samples((2.0,) * count), Samples((1.0,) * count))
    assert is_measurable_difference(Samples((2.4,) * count), Samples((1.0,) * count))


def test_percentiles_lie_between_samples() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 25) == pytest.approx(1.75)
    assert percentile([5.0], 75) == 5.0


def test_the_state_of_a_gpu_is_read_from_its_driver() -> None:
    state = clocks.parse_state("575.57.08, 1980, 1980, 3201, 41, [N/A], 0x0000000000000004\n")
    assert state == {
        "driver": "575.57.08",
        "sm_mhz": 1980.0,
        "sm_max_mhz": 1980.0,
        "memory_mhz": 3201.0,
        "temperature_c": 41.0,
        "power_w": None,
        "throttle": ["power cap"],
    }
    assert "slowed by power cap" in clocks.sentence(state)
    assert clocks.parse_state("no devices were found") is None
    assert clocks.device_state(CPU) is None
