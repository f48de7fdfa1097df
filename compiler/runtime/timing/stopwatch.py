"""One sample of one call's time: by CUDA events on a GPU, by the process's clock on a CPU.

While a call of the snippet's runs, so does all that the snippet has patched. Between the two looks at the clock there
is thus nothing but the call: the clock, the events and the number of repeats are at hand before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

import torch

from compiler.devices import device_for
from compiler.runtime.host.allocator import keep_freed_memory
from compiler.runtime.timing.noise import percentile
from compiler.snippet_changes import NO_CHANGES, SnippetChanges
from compiler.wording import counted

Call = Callable[[], object]

#: A sample should last this long, in milliseconds: far above what reading a clock costs (about 0.1 µs) and what an
#: event resolves (about 0.5 µs). Shorter calls are repeated within one sample.
SHORTEST_SAMPLE_MS = 0.05
#: Times as long as that, from which a call is known to fill a sample by one look at it.
CERTAINLY_LONG = 1000
MOST_REPEATS = 1000

#: Samples of a call that does nothing.
EMPTY_SAMPLES = 15

#: The GPU is kept busy while the host queues the call, for at most this long.
LONGEST_HOLD_MS = 5.0


class HostStopwatch:
    """The CPU's: `time.perf_counter` around a batch of calls long enough to be timed: beside them, what
    reading it takes does not show."""

    #: What it shows beside the time from the start of a call's first kernel to the end of its last.
    beside_ms = 0.0

    def __init__(self, changes: SnippetChanges = NO_CHANGES) -> None:
        self._in_force = changes.in_force_for_a_sample
        self._keeps_memory = keep_freed_memory()
        self._repeats: dict[Call, int] = {}

    def has_host_time(self, call: Call) -> bool:
        """Whether a GPU waits for the host within the call, so that its time has the host's in it."""
        return False

    def prepare(self, call: Call) -> None:
        """Told each call once, warm, before it is sampled."""
        once = self._time(call, 1)
        if once < CERTAINLY_LONG * SHORTEST_SAMPLE_MS:
            once = min(once, self._time(call, 1))
        self._repeats[call] = max(1, min(MOST_REPEATS, round(SHORTEST_SAMPLE_MS / max(once, 1e-6) + 0.5)))

    def sample(self, call: Call) -> float:
        """Milliseconds of one call."""
        return self._time(call, self._repeats.get(call, 1))

    def wall(self, call: Call) -> float:
        """Milliseconds on the host's clock until the call has returned; on a GPU its work is then still queued."""
        return self.sample(call)

    @property
    def method(self) -> str:
        """How it measures, in sentences for a report."""
        pages = (
            "Freed memory stays in the process (mallopt: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD), so that page "
            "faults of fresh outputs are not timed."
            if self._keeps_memory
            else "The allocator could not be told to keep freed memory: page faults of fresh outputs are timed too."
        )
        return (
            "Time of the process's clock around the call; calls shorter than 50 µs are repeated within a sample. "
            f"{pages} Caches are as the previous contestant left them. {counted(torch.get_num_threads(), 'thread')}."
        )

    def _time(self, call: Call, repeats: int) -> float:
        turns = repeat(None, repeats)
        with self._in_force():
            start = perf_counter()
            for _ in turns:
                call()
            end = perf_counter()
        return (end - start) * 1e3 / repeats


class CudaStopwatch:
    """A GPU's: CUDA events around the call in the current stream.

    Before each sample a buffer of twice the L2 cache is overwritten (`cold_l2`), and a spinning kernel holds the stream
    while the host queues the call, so that the time between the events is the device's and no launch gap is in it,
    unless the call itself waits for the device or takes the host longer than 5 ms to queue. Where the stream was let go
    before all was queued, as the host was slower than it had been, the sample is taken again with a longer hold.

    No hold is long enough for a call that waits for the device: it gets one that lets the host come to its first wait.
    A longer one would add to its time: a host that has waited for 5 ms is slower afterwards (docs/measuring.md).
    """

    def __init__(self, device: torch.device, cold_l2: bool, changes: SnippetChanges = NO_CHANGES) -> None:
        self._in_force = changes.in_force_for_a_sample
        self.device = device
        self.cold_l2 = cold_l2
        cache_bytes = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 64 << 20))
        self._flush = torch.empty(2 * cache_bytes, dtype=torch.uint8, device=device) if cold_l2 else None
        # torch gives its events no types in some versions.
        event: Any = torch.cuda.Event
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)
        # Held, as all that is called while a call is timed.
        self._record_start, self._record_end, self._is_past_start = (
            self._start.record,
            self._end.record,
            self._start.query,
        )
        self._spin = getattr(torch.cuda, "_sleep", None)
        #: Milliseconds for which the stream is held, by call.
        self._holds: dict[Call, float] = {}
        self._repeats: dict[Call, int] = {}
        #: Calls that wait for the device.
        self._waiting: set[Call] = set()
        self._cycles_per_ms = self._spin_rate()
        self._nothing_ms, self._gap_ms = self._of_nothing(), 1e-3 * device_for(device).gap_us
        self.beside_ms = self._nothing_ms + self._gap_ms

    def prepare(self, call: Call) -> None:
        queueing = max(self.wall(call) for _ in range(5))
        hold = min(1.5 * queueing + 0.02, LONGEST_HOLD_MS)
        self._holds[call] = LONGEST_HOLD_MS
        # One that the longest hold is not enough for in any of several tries waits; a slow moment has one of them.
        if hold < LONGEST_HOLD_MS and not any(self._time(call, 1)[1] for _ in range(3)):
            self._waiting.add(call)
        self._holds[call] = hold
        once = min(self._time(call, 1)[0] for _ in range(2))
        # Repeats would find their data in the cache, so a cold sample is always one call.
        enough = round(SHORTEST_SAMPLE_MS / max(once, 1e-6) + 0.5)
        self._repeats[call] = 1 if self.cold_l2 else max(1, min(MOST_REPEATS, enough))

    def sample(self, call: Call) -> float:
        while True:
            milliseconds, is_queued_in_time = self._time(call, self._repeats.get(call, 1))
            hold = self._holds.get(call, LONGEST_HOLD_MS)
            if is_queued_in_time or hold >= LONGEST_HOLD_MS or call in self._waiting:
                return milliseconds
            self._holds[call] = min(2 * hold, LONGEST_HOLD_MS)

    def has_host_time(self, call: Call) -> bool:
        return call in self._waiting or self._holds.get(call, 0.0) >= LONGEST_HOLD_MS

    def wall(self, call: Call) -> float:
        torch.cuda.synchronize(self.device)
        with self._in_force():
            start = perf_counter()
            call()
            end = perf_counter()
        torch.cuda.synchronize(self.device)
        return (end - start) * 1e3

    @property
    def method(self) -> str:
        cache = (
            "Before each sample a buffer of twice the L2 cache is overwritten."
            if self.cold_l2
            else "The L2 cache is warm; calls shorter than 50 µs are repeated within a sample."
        )
        return (
            f"Device time between CUDA events around the call. {cache} The stream is held busy while the host queues "
            "the call, so that launch gaps are not in the time; of a call that waits for the device, until it does so. "
            f"Of a call that does nothing it shows {1e3 * self._nothing_ms:.2f} µs, and between an event and a kernel "
            f"the device takes {1e3 * self._gap_ms:.1f} µs (of its record): both are taken from the times of single "
            "kernels and graphs, which are thus what a profiler calls their duration."
        )

    def _time(self, call: Call, repeats: int) -> tuple[float, bool]:
        """Milliseconds of one call, and whether the stream was still held when all was queued."""
        turns, cycles = repeat(None, repeats), int(self._holds.get(call, 0.0) * self._cycles_per_ms)
        flush, spin = self._flush, self._spin
        if flush is not None:
            flush.zero_()
        with self._in_force():
            if spin is not None and cycles > 0:
                spin(cycles)
            self._record_start()
            for _ in turns:
                call()
            self._record_end()
            is_queued_in_time = not self._is_past_start()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / repeats, is_queued_in_time

    def _of_nothing(self) -> float:
        def nothing() -> None:
            pass

        self._holds[nothing] = SHORTEST_SAMPLE_MS
        try:
            # A slow moment must not count as the stopwatch's own: the times of kernels would be too short.
            return percentile([self._time(nothing, 1)[0] for _ in range(EMPTY_SAMPLES)], 25)
        finally:
            del self._holds[nothing]

    def _spin_rate(self) -> float:
        """Cycles of the spinning kernel in a millisecond; 0.0 where this torch has none, and nothing is held."""
        if self._spin is None:
            return 0.0
        cycles = 1_000_000
        with torch.cuda.device(self.device):
            self._spin(cycles)
            torch.cuda.synchronize(self.device)
            self._start.record()
            self._spin(cycles)
            self._end.record()
            self._end.synchronize()
        return cycles / max(float(self._start.elapsed_time(self._end)), 1e-3)


Stopwatch = HostStopwatch | CudaStopwatch


def stopwatch(device: torch.device, cold_l2: bool = True, changes: SnippetChanges = NO_CHANGES) -> Stopwatch:
    """The stopwatch of a device. `cold_l2` concerns GPUs only; `changes` are of the snippet whose calls are timed."""
    return CudaStopwatch(device, cold_l2, changes) if device.type == "cuda" else HostStopwatch(changes)
