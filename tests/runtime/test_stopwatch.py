"""A sample of a GPU's time has no launch gap in it, however slow the host is at that moment."""

from __future__ import annotations

import time

import pytest
import torch

from compiler.runtime.timing.stopwatch import LONGEST_HOLD_MS, CudaStopwatch, stopwatch

GPU = torch.device("cuda", 0)


class SlowHost(CudaStopwatch):
    """A stopwatch without a GPU, of a host that takes `queueing_ms` to queue any call."""

    def __init__(self, hold_ms: float, queueing_ms: float) -> None:
        self._holds = {call: hold_ms}
        self._repeats = {}
        self._waiting = set()
        self.cold_l2 = True
        self.queueing_ms = queueing_ms
        self.holds: list[float] = []

    def wall(self, call: object) -> float:
        return self.queueing_ms

    def _time(self, call: object, repeats: int) -> tuple[float, bool]:
        hold = self._holds[call]  # type: ignore[index]
        self.holds.append(hold)
        gap = max(0.0, self.queueing_ms - hold)
        return 0.01 + gap, gap == 0.0


def call() -> None:
    pass


def test_a_sample_with_a_launch_gap_is_taken_again_with_a_longer_hold() -> None:
    watch = SlowHost(hold_ms=0.3, queueing_ms=1.0)
    assert watch.sample(call) == 0.01
    assert watch.holds == [0.3, 0.6, 1.2]
    assert watch.sample(call) == 0.01
    assert watch.holds[3:] == [1.2]


def test_the_longest_hold_is_the_last_try() -> None:
    watch = SlowHost(hold_ms=2.0, queueing_ms=8.0)
    assert watch.sample(call) == pytest.approx(8.01 - LONGEST_HOLD_MS)
    assert watch.holds == [2.0, 4.0, LONGEST_HOLD_MS]


class WaitingCall(SlowHost):
    """Of a call that waits for the device, which it does `slowly` after a long hold."""

    def _time(self, call: object, repeats: int) -> tuple[float, bool]:
        hold = self._holds[call]  # type: ignore[index]
        self.holds.append(hold)
        return 0.01 * hold, False


def test_a_call_that_waits_for_the_device_is_not_held_for_longer_in_vain() -> None:
    watch = WaitingCall(hold_ms=0.0, queueing_ms=0.2)
    watch.prepare(call)
    prepared = len(watch.holds)
    assert [watch.sample(call) for _ in range(3)] == [pytest.approx(0.0032)] * 3
    assert watch.holds[prepared:] == [pytest.approx(0.32)] * 3


def test_a_call_that_has_the_longest_hold_is_not_tried_with_it() -> None:
    watch = SlowHost(hold_ms=0.0, queueing_ms=30.0)
    watch.prepare(call)
    assert len(watch.holds) == 2


def test_a_slow_moment_makes_no_call_one_that_waits() -> None:
    class Hiccup(SlowHost):
        def _time(self, call: object, repeats: int) -> tuple[float, bool]:
            time, _ = super()._time(call, repeats)
            return time, len(self.holds) != 1 and time == 0.01

    watch = Hiccup(hold_ms=0.0, queueing_ms=0.2)
    watch.prepare(call)
    watch.queueing_ms, watch.holds = 1.0, [0.0]
    assert watch.sample(call) == 0.01
    assert watch.holds[-1] == pytest.approx(1.28)


@pytest.mark.gpu
def test_a_host_that_becomes_slow_is_not_in_the_time() -> None:
    x = torch.ones(64, device=GPU)
    pause = 0.0

    def two_kernels() -> None:
        x.add_(1)
        time.sleep(pause)
        x.add_(1)

    watch = stopwatch(GPU)
    watch.prepare(two_kernels)
    pause = 0.002
    # Others who use the device now and then make one sample longer, never all.
    assert min(watch.sample(two_kernels) for _ in range(20)) < 1.0
