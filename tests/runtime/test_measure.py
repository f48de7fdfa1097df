"""How times are taken: order, warm-up, repeats, statistics. No test asserts a duration."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from compiler.options import Timing
from compiler.runtime.timing import clocks
from compiler.runtime.timing.measure import (
    WARMUP_CALLS,
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
    assert [type(one.ratio_factor) for one in result.contestants] == [type(None), float]
    assert result.waited_share is not None and 0 <= result.waited_share <= 1
    assert ("waited for a core" in result.method) == (result.waited_share >= 0.01)
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


def test_percentiles_lie_between_samples() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 25) == pytest.approx(1.75)
    assert percentile([5.0], 75) == 5.0


class Driver:
    """Like pynvml, of a GPU whose clock falls from look to look, and which is short of power at the second."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = range(3)

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.clocks, self.reasons = iter([1980, 1755, 1800]), iter([0x1, 0x4, 0x1])

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return next(self.clocks)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return next(self.reasons)

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        raise self.NVMLError


def test_the_clocks_of_a_gpu_are_looked_at_between_the_rounds() -> None:
    seen = clocks.GpuClocks(Driver(), "GPU")
    assert seen.sentence == ""
    take_samples({"eager": lambda: None}, CountingStopwatch(), CPU, Timing(min_runs=3), seen=seen)
    assert seen.sentence == "SM clock 1755 to 1980 of 1980 MHz in 3 looks, between the rounds; slowed by power cap."
    assert clocks.GpuClocks.of(CPU) is None
