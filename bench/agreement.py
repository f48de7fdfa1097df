"""Whether times can be believed: kernels' beside torch's profiler, and those of two explorations beside each other.

    python -m bench.agreement --device cuda --runs 2 --seconds 225 --out agreement_h100.json
    python -m bench.agreement --device cpu --programs 01_activation,softmax_by_hand

Each program is explored as the service would, several times, each in a process of its own. A last process takes each
kernel with the stopwatch of the explorations, on the same tensors, while torch's profiler records: so both see the
same launches, in the same rhythm, at one clock of the GPU. A sample holds the stream before its launch, so that a
launch is told by its place and not by a name; the profiler's time is from the start of the first work of the launch to
the end of the last. On a CPU the profiler sees launches of its own, as the stopwatch repeats short ones in a sample.

`needed` is what the record of a device (`compiler/devices.py`) must have for `GOAL_SHARE` of the pairs, fitted to every
other pair; `needed_elsewhere` is how many of the rest are within it. `ratios` are those of eager's time to each other
contestant's. Of a CPU each pair says for which share of its time a process waited for a core in the busier run
(`waited`), and what is fitted is a share of the time, and one of w / (1 - w).
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function
from torch.profiler import profile as profiler_of

from bench.environment import describe, write_json
from bench.reproducers import Program, patterns
from bench.snippets import FOLDER
from compiler.options import Options, Timing
from compiler.pipeline import compile_graphs
from compiler.report import Contestant
from compiler.runtime.timing.measure import Samples
from compiler.runtime.timing.noise import BetweenRuns, ratio_of, stated_spread
from compiler.runtime.timing.stopwatch import stopwatch
from compiler.runtime.trial import record_arguments
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Timed
from compiler.stages.measuring import measure, profile
from compiler.stages.running import run

#: Kernels from here on are compared, in microseconds: below, what starting a kernel takes is a large part.
SHORTEST_US = 10.0
SHORT_US = 50.0
#: How far both may be apart, and how often two runs have to be within their spread.
GOAL_PERCENT, GOAL_SHARE = 3.0, 0.95
#: Samples of each kernel under the profiler.
SAMPLES = 20
#: Seconds of the same samples before: under matrix products a GPU lowers its clock. From rest a product of a
#: millisecond is 7 to 14 % shorter.
WARM_SECONDS = 0.5
#: What the stopwatch holds the stream by, and what it overwrites the cache by.
_HOLD, _FLUSH = "spin_kernel", ("memset", "fill")
_MARK = "launch"
METHOD = (
    "A kernel's time is the median of the stopwatch's samples, and the profiler's that of the same launches, taken "
    "while it recorded. `reported_us` is what an exploration told some seconds before. `beside_us` is what the "
    "stopwatch shows beside a kernel, which its time is without; `longer_us` is by how much kernels shorter than 50 us "
    "are longer than the profiler says all the same. Two runs of a contestant are within their spread if their medians "
    "differ by no more than the larger of the two stated spreads (`spread_ms`), and their ratios to eager's if they "
    "differ by no more than the larger of the two stated factors. `contradicted` counts the pairs of which one says "
    "that a contestant is faster than eager, or slower, and the other's ratio is not on that side of 1."
)


@dataclass(frozen=True)
class Run:
    """What one exploration of a program measured: contestants of the calls, and kernels by graph and name."""

    calls: dict[str, Contestant]
    kernels: dict[str, Samples]
    problem: str | None = None
    waited: float | None = None
    load: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    device, ends = torch.device(asked.device), perf_counter() + asked.seconds
    chosen = None if asked.programs is None else asked.programs.split(",")
    size = asked.size or ("full" if device.type == "cuda" else "small")
    runs: dict[str, list[Run]] = {}
    compared: list[dict[str, Any]] = []
    fresh = multiprocessing.get_context("spawn")
    for turn in range(asked.runs + 1):
        is_profiled = turn == asked.runs  # last, as a profiler leaves each launch of its process slower
        with ProcessPoolExecutor(1, fresh) as process:
            beside = process.submit(_beside_us, device).result()
            for program in programs(chosen, size, asked.device):
                if perf_counter() > ends or (not is_profiled and len(runs.get(program.name, ())) < turn):
                    continue
                one, found = process.submit(explored, program, device, is_profiled).result()
                compared += found
                if not is_profiled:
                    runs.setdefault(program.name, []).append(one)
                if asked.out is not None:  # what was found stays, should this be stopped
                    results = told(runs, compared, beside, device)
                    write_json(asked.out, {**results, "environment": describe(device, None, 0)})
    print(summary(told(runs, compared, beside, device)))
    return 0


def _beside_us(device: torch.device) -> float:
    return 1e3 * stopwatch(device).beside_ms


def programs(chosen: Sequence[str] | None, size: str, device: str) -> Iterator[Program]:
    snippets = [Program(file.stem, file.read_text()) for file in sorted(FOLDER.glob("*.py"))]
    for program in [*snippets, *patterns("all", size, device)]:
        if chosen is None or program.name in chosen:
            yield program


def explored(program: Program, device: torch.device, with_profiler: bool) -> tuple[Run, list[dict[str, Any]]]:
    """One exploration, and its kernels beside the profiler."""
    options = Options(device=device.type, timing=Timing())
    exploration = Exploration(program.source, options, lambda _: None, is_brief=True)
    graphs = compile_graphs(exploration)
    built = exploration.stage("run", run, graphs, otherwise=graphs.none)
    built = exploration.stage("measure", measure, built, otherwise=built)
    timed = exploration.stage("profile", profile, built, otherwise=Timed(built))
    timing, error = exploration.report.timing, exploration.report.error
    measured = Run(
        calls={one.name: one for one in (timing.contestants if timing is not None else ())},
        kernels={
            f"{graph}.{name}": samples
            for graph, times in timed.kernels.items()
            for name, samples in times.kernels.items()
        },
        problem=error.message.splitlines()[0] if error is not None else None,
        waited=timing.waited_share if timing is not None else None,
        load=os.getloadavg()[0],
    )
    try:
        return measured, list(beside_profiler(program.name, timed, device)) if with_profiler else []
    finally:
        exploration.forget()
        exploration.changes.give_back()


# --- the profiler


def beside_profiler(program: str, timed: Timed, device: torch.device) -> Iterator[dict[str, Any]]:
    """Each kernel that takes long enough: its time as the report has it, and the profiler's."""
    for work in timed.graphs.work:
        known = {kernel.name: kernel for kernel in work.report.kernels}
        times = timed.kernels[work.report.name].kernels if work.report.name in timed.kernels else {}
        long = {name for name, samples in times.items() if 1e3 * samples.median_ms >= SHORTEST_US}
        if not long or work.captured.inputs is None:
            continue
        launches = work.compilation.executable.kernels
        for name, arguments in record_arguments(work.compilation, work.captured.inputs).items():
            if name not in long or name not in known:
                continue
            ours, theirs = both_us(partial(launches[name], *arguments), device)
            reported = 1e3 * times[name].median_ms
            yield {
                "program": program,
                "kernel": f"{work.report.name}.{name}",
                "kind": known[name].kind,
                "measured_us": round(ours, 3),
                "profiler_us": round(theirs, 3),
                "percent": percent_apart(ours, theirs),
                "reported_us": round(reported, 3),
                "reported_percent": percent_apart(reported, theirs),
                "disturbed": work.report.disturbed,
            }


def both_us(call: Callable[[], object], device: torch.device) -> tuple[float, float]:
    """Microseconds of a launch by the stopwatch and by the profiler, as medians of the same launches."""
    watch = stopwatch(device)
    watch.prepare(call)
    samples: list[float] = []

    def take() -> None:
        samples[:] = [watch.sample(call) for _ in range(SAMPLES)]

    began = perf_counter()
    while perf_counter() - began < WARM_SECONDS:
        take()
    theirs = _on_gpu(take) if device.type == "cuda" else _on_host(call)
    return 1e3 * (statistics.median(samples) - watch.beside_ms), statistics.median(theirs)


def _on_gpu(take: Callable[[], object]) -> list[float]:
    with profiler_of(activities=[ProfilerActivity.CUDA]) as profiler:
        take()
    ran = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return held_launches([(event.name, event.time_range.start, event.time_range.end) for event in ran])


def held_launches(events: Sequence[tuple[str, float, float]]) -> list[float]:
    """What ran after each hold of the stream, from its start to its end, without the overwriting of the cache that
    comes before the next hold. An event is a name, a start and an end."""
    ordered = sorted(events, key=lambda event: event[1])
    holds = [place for place, event in enumerate(ordered) if _HOLD in event[0]]
    found: list[float] = []
    for hold, following in zip(holds, [*holds[1:], len(ordered)], strict=True):
        work = ordered[hold + 1 : following]
        if following < len(ordered) and work and any(name in work[-1][0].lower() for name in _FLUSH):
            work.pop()
        if work:
            found.append(max(end for _, _, end in work) - work[0][1])
    return found


def _on_host(call: Callable[[], object]) -> list[float]:
    with profiler_of(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(SAMPLES):
            with record_function(_MARK):
                call()
    return [event.time_range.end - event.time_range.start for event in profiler.events() if event.name == _MARK]


# --- what came of it


def told(
    runs: Mapping[str, Sequence[Run]], compared: Sequence[Mapping[str, Any]], beside: float, device: torch.device
) -> dict[str, Any]:
    kernels = [pair for name, found in runs.items() for pair in pairs(name, found, lambda run: run.kernels)]
    calls = [pair for name, found in runs.items() for pair in pairs(name, found, lambda run: run.calls)]
    ratios = [pair for name, found in runs.items() for pair in ratio_pairs(name, found)]
    return {
        "method": METHOD,
        "beside_us": round(beside, 3),
        "profiler": within_goal(compared),
        "calls": counted(calls),
        "kernels": counted(kernels),
        "ratios": counted(ratios) | {"contradicted": sum(one["is_contradicted"] for one in ratios)},
        "needed": needed([*kernels, *calls], device),
        "needed_of_ratios": needed(ratios, device),
        "problems": {name: found[0].problem for name, found in runs.items() if found[0].problem is not None},
        "waited": {name: [one.waited for one in found] for name, found in runs.items()},
        "load": {name: [round(one.load, 1) for one in found] for name, found in runs.items()},
        "beside_profiler": list(compared),
        "call_pairs": calls,
        "kernel_pairs": kernels,
        "ratio_pairs": ratios,
    }


def percent_apart(ours: float, theirs: float) -> float:
    return round(100 * (ours - theirs) / theirs, 2)


def within_goal(compared: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    off = sorted(abs(one["percent"]) for one in compared)
    short = [one["measured_us"] - one["profiler_us"] for one in compared if one["profiler_us"] < SHORT_US]
    return {
        "kernels": len(off),
        "within_goal": sum(percent <= GOAL_PERCENT for percent in off),
        "median_percent": statistics.median(off) if off else None,
        "largest_percent": off[-1] if off else None,
        "longer_us": round(statistics.median(short), 3) if short else None,
    }


def pairs(
    program: str, runs: Sequence[Run], of: Callable[[Run], Mapping[str, Contestant | Samples]]
) -> Iterator[dict[str, Any]]:
    """Each two runs of one program, by what was timed in both."""
    for a, b in combinations(runs, 2):
        for name in of(a).keys() & of(b).keys():
            one, two = of(a)[name], of(b)[name]
            least, most = sorted((one.median_ms, two.median_ms))
            spread = max(_spread(one), _spread(two))
            yield {
                "program": program,
                "timed": name,
                "ms": [one.median_ms, two.median_ms],
                "apart": (most - least) / most,
                "of_samples": max(stated_spread(timed.samples_ms, BetweenRuns()) for timed in (one, two)) / most,
                "of_time": 1 / most,
                "waited": max(a.waited or 0.0, b.waited or 0.0),
                "percent": round(100 * (most - least) / max(least, 1e-9), 2),
                "spread_percent": round(100 * spread / max(one.median_ms, 1e-9), 2),
                "is_within_spread": most - least <= spread,
            }


def ratio_pairs(program: str, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Each two runs of one program, by the ratio of eager's time to that of each other contestant."""
    for a, b in combinations([one for one in runs if "eager" in one.calls], 2):
        for name in a.calls.keys() & b.calls.keys() - {"eager"}:
            both = [(each.calls["eager"], each.calls[name]) for each in (a, b)]
            found = [ratio_of(eager.samples_ms, other.samples_ms) for eager, other in both]
            apart = abs(math.log(found[0].value / found[1].value))
            stated = max(math.log(other.ratio_factor or 1.0) for _, other in both)
            is_doubted = (found[0].value - 1) * (found[1].value - 1) <= 0
            yield {
                "program": program,
                "timed": name,
                "ratios": [one.value for one in found],
                "apart": apart,
                "of_samples": max(math.log(one.factor) for one in found),
                "of_time": max(math.hypot(*(1 / one.median_ms for one in pair)) for pair in both),
                "waited": max(a.waited or 0.0, b.waited or 0.0),
                "percent": round(100 * math.expm1(apart), 2),
                "spread_percent": round(100 * math.expm1(min(stated, 20.0)), 2),
                "is_within_spread": apart <= stated,
                "is_contradicted": is_doubted and any(other.differs_from_eager for _, other in both),
            }


def _spread(timed: Contestant | Samples) -> float:
    spread = timed.spread_ms
    assert spread is not None
    return spread


def needed(found: Sequence[Mapping[str, Any]], device: torch.device) -> dict[str, float]:
    """The least that two runs must be allowed, beyond what their samples show, for `GOAL_SHARE` of every other pair to
    be within their spread, and the share of the rest that then are. A share of each, and on a GPU milliseconds of any
    time, on a CPU one of what others took: of all that are enough, the one whose sum is least at 20 us, and at a
    process that waits for a fifth of its time."""
    is_gpu = device.type == "cuda"
    steps, usual = (2e-5, 50.0) if is_gpu else (0.05, 0.25)
    fitted = [(_beyond(pair), pair["of_time"] if is_gpu else _waits(pair)) for pair in found]
    candidates = [(step * steps, share * 1e-3) for step in range(101) for share in range(0, 301, 1 if is_gpu else 5)]
    ordered = sorted(candidates, key=lambda one: usual * one[0] + one[1])
    least = next((one for one in ordered if _share_within(fitted[::2], one) >= GOAL_SHARE), ordered[-1])
    first = "ms" if is_gpu else "waits"
    return {first: least[0], "share": least[1], "elsewhere": _share_within(fitted[1::2], least)}


def _waits(pair: Mapping[str, Any]) -> float:
    return float(pair["waited"] / max(1 - pair["waited"], 1e-3))


def _beyond(pair: Mapping[str, Any]) -> float:
    """What the samples do not explain of how far two runs are apart, errors being added as squares."""
    return math.sqrt(max(pair["apart"] ** 2 - pair["of_samples"] ** 2, 0.0))


def _share_within(fitted: Sequence[tuple[float, float]], allowed: tuple[float, float]) -> float:
    within = sum(beyond <= allowed[0] * feature + allowed[1] + 1e-9 for beyond, feature in fitted)
    return within / max(len(fitted), 1)


def counted(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "pairs": len(found),
        "within_spread": sum(one["is_within_spread"] for one in found),
        "median_spread_percent": statistics.median(one["spread_percent"] for one in found) if found else None,
        "median_percent": statistics.median(one["percent"] for one in found) if found else None,
        "largest_percent": max((one["percent"] for one in found), default=None),
    }


def summary(results: Mapping[str, Any]) -> str:
    beside = results["profiler"]
    lines = [
        f"Kernels of {SHORTEST_US:.0f} us and more beside the profiler: {beside['kernels']}, {beside['within_goal']} "
        f"within {GOAL_PERCENT} %; median {beside['median_percent']} %, largest {beside['largest_percent']} %.",
        f"Those shorter than {SHORT_US:.0f} us are {beside['longer_us']} us longer.",
        f"Between runs, fitted to every other pair: times {results['needed']}, ratios {results['needed_of_ratios']}; "
        f"{results['ratios']['contradicted']} verdicts that the other run contradicts.",
    ]
    for what in ("calls", "kernels", "ratios"):
        found = results[what]
        lines.append(
            f"Two runs of {what}: {found['pairs']} pairs, {found['within_spread']} within their spread (goal "
            f"{GOAL_SHARE:.0%}); median spread {found['median_spread_percent']} %; median {found['median_percent']} %, "
            f"largest {found['largest_percent']} %."
        )
    worst = sorted(results["beside_profiler"], key=lambda one: -abs(one["percent"]))[:10]
    lines += [
        f"  {one['program']} {one['kernel']}: {one['measured_us']} us, profiler {one['profiler_us']} us, "
        f"{one['percent']:+} %"
        for one in worst
    ]
    every = [*results["call_pairs"], *results["kernel_pairs"], *results["ratio_pairs"]]
    lines += [
        f"  {one['program']} {one['timed']}: {one.get('ms') or one['ratios']}, spread {one['spread_percent']} %"
        for one in every
        if not one["is_within_spread"]
    ]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="Where the programs are explored.")
    parser.add_argument("--programs", metavar="NAMES", help="Snippets and patterns with commas between; all otherwise.")
    parser.add_argument("--size", choices=("full", "small", "tiny"), help="Which inputs patterns are given.")
    parser.add_argument("--runs", type=int, default=2, help="How often each program is explored.")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="No program is begun after so long.")
    parser.add_argument("--out", type=Path, help="A file for the JSON.")
    return parser


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
