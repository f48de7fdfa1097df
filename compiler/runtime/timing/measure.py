"""Times of several ways to run the same calls, taken so that they can be compared.

The contestants are interleaved: each round samples every one of them once, in an order that changes from round to
round, so that a clock that drifts or a neighbour that wakes up meets all of them alike. Medians and quartiles are
reported and every sample is kept.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from compiler.budget import UNLIMITED, Budget
from compiler.devices import device_for
from compiler.garbage import garbage_kept
from compiler.options import Timing
from compiler.report import Contestant, TimingResult
from compiler.runtime.timing import clocks
from compiler.runtime.timing.noise import (
    FEWEST_SAMPLES,
    RULE,
    UNSEEN,
    BetweenRuns,
    Ratio,
    percentile,
    ratio_of,
    stated_spread,
)
from compiler.runtime.timing.stopwatch import Call, Stopwatch, stopwatch
from compiler.snippet_changes import NO_CHANGES, SnippetChanges
from compiler.wording import counted

#: Calls before the first sample: a compiled function compiles, tunes and records its CUDA graph in the first two.
WARMUP_CALLS = 3
#: The share of `Timing.max_seconds` after which a CPU makes no more of them: what runs there was compiled before, and a
#: call that long has met all of the memory that it works on.
WARMUP_SHARE = 0.25
#: Calls whose time on the host is taken: with few of them a neighbour of the host decides.
HOST_SAMPLES = 21
#: Rounds that are taken even when `Timing.max_seconds` are up, while they fit into the exploration's time.
FEWEST_ROUNDS = FEWEST_SAMPLES
#: By how much calls whose time on a GPU has the host's in it differ from run to run, as a share of the longer, and
#: their ratio to eager's: 18 pairs of runs of three snippets beside two H100s. The first run of a process was up to
#: three times as long as later ones.
HOST_SHARE, HOST_RATIO = 0.7, 0.3
#: On a CPU that others use, of a time and of a ratio: what is added for each second of waiting to one of running. The
#: largest that 95 of 100 pairs needed in five ranges of waiting, of 96 runs beside up to 18 others on two cores.
WAITS_OF_TIME, WAITS_OF_RATIO = 2.1, 0.85
#: Waiting is told in words from this share on.
TOLD_FROM = 0.01
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Samples:
    """What was measured of one contestant, in milliseconds: device time on a GPU, wall time on a CPU; and on a GPU the
    time that the host took to queue one call. `between` is what another run of these may differ by beyond them, and
    `waited` the share of its time for which the process waited for a core meanwhile."""

    samples_ms: tuple[float, ...]
    host_ms: float | None = None
    between: BetweenRuns = UNSEEN
    waited: float = 0.0

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples_ms)

    @property
    def quartiles_ms(self) -> tuple[float, float]:
        """The 25th and the 75th percentile."""
        return percentile(self.samples_ms, 25), percentile(self.samples_ms, 75)

    @property
    def spread_ms(self) -> float:
        """By how much the median of another run may differ, 95 times in 100."""
        return stated_spread(self.samples_ms, self.between)

    def less(self, milliseconds: float) -> Samples:
        """Each sample without what is no part of the work."""
        return replace(self, samples_ms=tuple(max(sample - milliseconds, 0.0) for sample in self.samples_ms))


def measure(
    contestants: Mapping[str, Call],
    device: torch.device,
    timing: Timing,
    budget: Budget = UNLIMITED,
    changes: SnippetChanges = NO_CHANGES,
) -> TimingResult:
    """Time the contestants against each other: `timing.min_runs` samples of each, fewer if `timing.max_seconds` are up
    or the budget would be, one of each at the least.

    Each call must run the same work on the same inputs; what it returns is dropped. An exception of a call is the
    caller's to handle. The calls run functions of the snippet whose `changes` these are.
    """
    watch, seen = stopwatch(device, timing.cold_l2, changes), clocks.GpuClocks.of(device)
    samples = take_samples(contestants, watch, device, timing, budget, changes, seen)
    waited = max(kept.waited for kept in samples.values()) if device.type == "cpu" and samples else None
    return TimingResult(
        method=_method(watch, samples, seen, waited),
        device=device_name(device),
        cold_l2=timing.cold_l2 and device.type == "cuda",
        waited_share=waited,
        contestants=[_contestant(name, samples[name], samples.get("eager")) for name in contestants],
    )


def _contestant(name: str, samples: Samples, eager: Samples | None) -> Contestant:
    beside = beside_each_other(samples, eager) if eager is not None and name != "eager" else None
    return Contestant(
        name=name,
        samples_ms=list(samples.samples_ms),
        median_ms=samples.median_ms,
        low_ms=samples.quartiles_ms[0],
        high_ms=samples.quartiles_ms[1],
        spread_ms=samples.spread_ms,
        ratio_factor=beside.factor if beside else None,
        differs_from_eager=beside.is_clear if beside else None,
    )


def take_samples(
    contestants: Mapping[Name, Call],
    watch: Stopwatch,
    device: torch.device,
    timing: Timing,
    budget: Budget = UNLIMITED,
    changes: SnippetChanges = NO_CHANGES,
    seen: clocks.GpuClocks | None = None,
) -> dict[Name, Samples]:
    """The samples of any set of contestants, interleaved. What the first call of each took says how many more of them
    fit into the budget; where no round does, those calls are the samples. `seen` looks between the rounds."""
    names = list(contestants)
    taken: dict[Name, list[float]] = {name: [] for name in names}
    is_gpu, cores = device.type == "cuda", clocks.core_time()
    with garbage_kept(), torch.cuda.device(device) if is_gpu else nullcontext():
        host: dict[Name, float | None] = dict.fromkeys(names)
        seconds: dict[Name, float] = {}
        for name, call in contestants.items():
            most = math.inf if is_gpu else WARMUP_SHARE * timing.max_seconds
            seconds[name] = _warm_up(call, most, budget, changes)
            if budget.fits(len(names) * seconds[name]):
                watch.prepare(call)
            if is_gpu and budget.fits(HOST_SAMPLES * seconds[name]):
                host[name] = statistics.median(watch.wall(call) for _ in range(HOST_SAMPLES))
        rounds = budget.within(timing.max_seconds)
        for turn in range(timing.min_runs):
            if (turn >= FEWEST_ROUNDS and rounds.is_spent) or not budget.fits(sum(seconds.values())):
                break
            for name in order_of_round(names, turn):
                taken[name].append(watch.sample(contestants[name]))
            if seen is not None:
                seen.look()
    changes.set_aside()
    waited = clocks.share_waited(cores, clocks.core_time())
    return {
        name: Samples(
            tuple(taken[name] or [1e3 * seconds[name]]),
            host[name],
            between_runs(device, waited, is_gpu and watch.has_host_time(call)),
            waited,
        )
        for name, call in contestants.items()
    }


def between_runs(device: torch.device, waited: float = 0.0, has_host_time: bool = False) -> BetweenRuns:
    """What is known of the device; and what the host adds. On a CPU that is what others took of it: of a process that
    waited for a core for the share `waited` of its time, another run may wait more or not at all, and loops in parallel
    wait for the slowest. On a GPU it is in the times of calls that wait for the device."""
    model = device_for(device)
    time, ratio = (HOST_SHARE, HOST_RATIO) if has_host_time else (0.0, 0.0)
    if device.type == "cpu" and waited < 1:
        time, ratio = (most * waited / (1 - waited) for most in (WAITS_OF_TIME, WAITS_OF_RATIO))
    share, of_ratio = model.between_runs_share + time, model.between_runs_ratio + ratio
    return BetweenRuns(1e-3 * model.between_runs_us, share, of_ratio)


def _warm_up(call: Call, most_seconds: float, budget: Budget, changes: SnippetChanges) -> float:
    """All calls before the first sample; no more of them once they have taken as long as that. Gives the seconds of
    the last one."""
    took = total = 0.0
    for _ in range(WARMUP_CALLS):
        before = budget.clock()
        with changes.in_force():
            call()
        took = budget.clock() - before
        total += took
        if total > most_seconds or not budget.fits(took):
            break
    return took


def measure_each(
    calls: Mapping[str, Call], device: torch.device, timing: Timing, budget: Budget = UNLIMITED
) -> dict[str, Samples]:
    """The samples of each of many single kernels, by name, as a profiler would tell their durations. They are not
    raced: each is timed on its own.

    `timing.max_seconds` and the budget are shared by all the calls; those for which nothing is left are not in the
    result, nor are those that took no longer than a call of nothing, as where that was timed in a slow moment."""
    share = timing.model_copy(update={"max_seconds": timing.max_seconds / max(len(calls), 1)})
    watch = stopwatch(device, timing.cold_l2)
    found: dict[str, Samples] = {}
    for position, (name, call) in enumerate(calls.items()):
        if budget.is_spent:
            break
        part = budget.share(1 / (len(calls) - position))
        samples = take_samples({name: call}, watch, device, share, part)[name]
        if samples.median_ms > watch.beside_ms:
            found[name] = samples.less(watch.beside_ms)
    return found


def beside_each_other(one: Samples, two: Samples) -> Ratio:
    """How many times the second's time the first's is, of contestants of one run."""
    pairs = zip(one.between, two.between, strict=True)
    return ratio_of(one.samples_ms, two.samples_ms, BetweenRuns(*(max(pair) for pair in pairs)))


def order_of_round(names: Sequence[Name], turn: int) -> list[Name]:
    """The order in which round `turn` takes the contestants: rotated by one each round, so that each of them is first
    equally often, and reversed after each full turn, so that each of them comes after each other one."""
    if not names:
        return []
    shift = turn % len(names)
    order = [*names[shift:], *names[:shift]]
    return order[::-1] if (turn // len(names)) % 2 else order


def device_name(device: torch.device) -> str:
    """The GPU's name as its driver gives it, or "cpu"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _method(
    watch: Stopwatch, samples: Mapping[str, Samples], seen: clocks.GpuClocks | None, waited: float | None
) -> str:
    rounds = max((len(kept.samples_ms) for kept in samples.values()), default=0)
    interleaved = counted(rounds, "interleaved round" if rounds > 1 else "round")
    sentences = [
        RULE,
        "Another run's median lies within the stated spread 95 times in 100: from the samples, and what runs on this "
        "device are known to differ by.",
        watch.method,
        f"{interleaved} after {WARMUP_CALLS} warm-up calls, fewer of what is long on a CPU; medians and quartiles.",
    ]
    queueing = [f"{name} {kept.host_ms * 1e3:.0f} µs" for name, kept in samples.items() if kept.host_ms is not None]
    if queueing:
        sentences.append(f"Host time to queue one call, not in the samples: {', '.join(queueing)}.")
    if waited is not None and waited >= TOLD_FROM:
        sentences.append(f"Others used the machine: for {waited:.0%} of its time this process waited for a core.")
    if seen is not None and seen.sentence:
        sentences.append(seen.sentence)
    return " ".join(sentences)
