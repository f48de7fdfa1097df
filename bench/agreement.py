"""Whether times can be believed: kernels' beside torch's profiler, and those of two explorations beside each other.

    python -m bench.agreement --device cuda --runs 3 --seconds 225 --out agreement_h100.json
    python -m bench.agreement --device cpu --programs 01_activation,softmax_by_hand

Each program is explored as the service would, and each kernel is then launched anew while torch's profiler records
it: on the same tensors, alone, with the L2 cache overwritten before it. Between two marks of a launch there is nothing
else, so that it is told by its place and not by a name; the profiler's time is from the start of the first work of the
launch to the end of the last. Then all programs are explored again, as often as `--runs` says.

`needed` is what the record of a device (`compiler/devices.py`) must have for `GOAL_SHARE` of the pairs, fitted to every
other pair; `needed_elsewhere` is how many of the rest are within it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from compiler.runtime.timing.measure import Samples, is_measurable_difference
from compiler.runtime.timing.noise import BetweenRuns, stated_spread
from compiler.runtime.timing.stopwatch import stopwatch
from compiler.runtime.trial import record_arguments
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Timed
from compiler.stages.measuring import measure, profile
from compiler.stages.running import run

#: Kernels from here on are compared, in microseconds: below, what starting a kernel takes is a large part.
SHORTEST_US = 10.0
#: How far both may be apart, and how often two runs have to be within their spread.
GOAL_PERCENT, GOAL_SHARE = 3.0, 0.95
#: Launches of each kernel under the profiler.
LAUNCHES = 20
#: Cycles for which a GPU is held, so that a launch is queued before the one before it has ended; and those of a mark.
HOLD_CYCLES, MARK_CYCLES = 200_000, 1
_MARK = "spin_kernel"
METHOD = (
    "A kernel's time is the median of the exploration's samples; the profiler's is the median of 20 launches of the "
    "same kernel on the same tensors, each with a cold L2 cache on a GPU. `nothing_us` is what the stopwatch shows of "
    "a call that does nothing, which a kernel's time is without. Two runs of a contestant are within their spread if "
    "their medians differ by no more than the larger of the two stated spreads (`spread_ms`); they are the same by the "
    "rule of `compiler/runtime/timing/noise.py` where no reader of one report would be told that one is faster."
)


@dataclass(frozen=True)
class Run:
    """What one exploration of a program measured: contestants of the calls, and kernels by graph and name."""

    calls: dict[str, Contestant]
    kernels: dict[str, Samples]
    problem: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    device, ends = torch.device(asked.device), perf_counter() + asked.seconds
    chosen = None if asked.programs is None else asked.programs.split(",")
    size = asked.size or ("full" if device.type == "cuda" else "small")
    nothing = 1e3 * stopwatch(device).nothing_ms
    runs: dict[str, list[Run]] = {}
    compared: list[dict[str, Any]] = []
    for turn in range(asked.runs):
        for program in programs(chosen, size, asked.device):
            if perf_counter() > ends or (turn and len(runs.get(program.name, ())) < turn):
                continue
            one, found = explored(program, device, with_profiler=turn == 0)
            runs.setdefault(program.name, []).append(one)
            compared += found
            if asked.out is not None:  # what was found stays, should this be stopped
                write_json(asked.out, {**told(runs, compared, nothing), "environment": describe(device, None, 0)})
    print(summary(told(runs, compared, nothing)))
    return 0


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
    graphs = exploration.stage("run", run, graphs, otherwise=graphs)
    graphs = exploration.stage("measure", measure, graphs, otherwise=graphs)
    timed = exploration.stage("profile", profile, graphs, otherwise=Timed(graphs))
    timing, error = exploration.report.timing, exploration.report.error
    measured = Run(
        calls={one.name: one for one in (timing.contestants if timing is not None else ())},
        kernels={
            f"{graph}.{name}": samples
            for graph, times in timed.kernels.items()
            for name, samples in times.kernels.items()
        },
        problem=error.message.splitlines()[0] if error is not None else None,
    )
    try:
        return measured, list(beside_profiler(program.name, timed, device)) if with_profiler else []
    finally:
        exploration.forget()
        exploration.changes.give_back()


# --- the profiler


def beside_profiler(program: str, timed: Timed, device: torch.device) -> Iterator[dict[str, Any]]:
    """Each kernel that takes long enough: its time as the report has it, and the profiler's."""
    for work in timed.graphs.alive:
        known = {kernel.name: kernel for kernel in work.report.kernels}
        times = timed.kernels[work.report.name].kernels if work.report.name in timed.kernels else {}
        long = {name for name, samples in times.items() if 1e3 * samples.median_ms >= SHORTEST_US}
        if not long or work.captured.inputs is None or work.compilation.executable is None:
            continue
        launches = work.compilation.executable.kernels
        for name, arguments in record_arguments(work.compilation, work.captured.inputs).items():
            if name not in long or name not in known:
                continue
            ours = 1e3 * times[name].median_ms
            theirs = statistics.median(profiled_us(partial(launches[name], *arguments), device))
            yield {
                "program": program,
                "kernel": f"{work.report.name}.{name}",
                "kind": known[name].kind,
                "measured_us": round(ours, 3),
                "profiler_us": round(theirs, 3),
                "percent": percent_apart(ours, theirs),
                "disturbed": work.report.disturbed,
            }


def profiled_us(call: Callable[[], object], device: torch.device) -> list[float]:
    """Microseconds of each launch, by the profiler."""
    return _on_gpu(call, device) if device.type == "cuda" else _on_host(call)


def _on_gpu(call: Callable[[], object], device: torch.device) -> list[float]:
    cache = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 64 << 20))
    flush = torch.empty(2 * cache, dtype=torch.uint8, device=device)
    spin = torch.cuda._sleep  # type: ignore[attr-defined]
    for _ in range(3):
        call()
    torch.cuda.synchronize(device)
    with profiler_of(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(LAUNCHES):
            flush.zero_()
            spin(HOLD_CYCLES)
            call()
            spin(MARK_CYCLES)
            torch.cuda.synchronize(device)
    ran = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return between_marks([(event.name, event.time_range.start, event.time_range.end) for event in ran])


def between_marks(events: Sequence[tuple[str, float, float]]) -> list[float]:
    """What ran between the first and the second mark of each launch, from its start to its end. An event is a name, a
    start and an end."""
    found: list[float] = []
    inside, began, ended = False, float("inf"), 0.0
    for name, start, end in sorted(events, key=lambda event: event[1]):
        if _MARK in name:
            if inside and ended > began:
                found.append(ended - began)
            inside, began, ended = not inside, float("inf"), 0.0
        elif inside:
            began, ended = min(began, start), max(ended, end)
    return found


def _on_host(call: Callable[[], object]) -> list[float]:
    for _ in range(3):
        call()
    with profiler_of(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(LAUNCHES):
            with record_function(_MARK):
                call()
    return [event.time_range.end - event.time_range.start for event in profiler.events() if event.name == _MARK]


# --- what came of it


def told(runs: Mapping[str, Sequence[Run]], compared: Sequence[Mapping[str, Any]], nothing: float) -> dict[str, Any]:
    kernels = [pair for name, found in runs.items() for pair in pairs(name, found, lambda run: run.kernels)]
    calls = [pair for name, found in runs.items() for pair in pairs(name, found, lambda run: run.calls)]
    needed = between_runs([*kernels, *calls][::2])
    return {
        "method": METHOD,
        "nothing_us": round(nothing, 3),
        "profiler": within_goal(compared),
        "calls": counted(calls),
        "kernels": counted(kernels),
        "needed": needed._asdict(),
        "needed_elsewhere": share_within([*kernels, *calls][1::2], needed),
        "problems": {name: found[0].problem for name, found in runs.items() if found[0].problem is not None},
        "beside_profiler": list(compared),
        "call_pairs": calls,
        "kernel_pairs": kernels,
    }


def percent_apart(ours: float, theirs: float) -> float:
    return round(100 * (ours - theirs) / theirs, 2)


def within_goal(compared: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    off = sorted(abs(one["percent"]) for one in compared)
    return {
        "kernels": len(off),
        "within_goal": sum(percent <= GOAL_PERCENT for percent in off),
        "median_percent": statistics.median(off) if off else None,
        "largest_percent": off[-1] if off else None,
    }


def pairs(
    program: str, runs: Sequence[Run], of: Callable[[Run], Mapping[str, Contestant | Samples]]
) -> Iterator[dict[str, Any]]:
    """Each two runs of one program, by what was timed in both."""
    for a, b in combinations(runs, 2):
        for name in of(a).keys() & of(b).keys():
            one, two = of(a)[name], of(b)[name]
            difference, spread = abs(one.median_ms - two.median_ms), max(_spread(one), _spread(two))
            without = [stated_spread(timed.samples_ms, BetweenRuns()) for timed in (one, two)]
            yield {
                "program": program,
                "timed": name,
                "ms": [one.median_ms, two.median_ms],
                "percent": round(100 * difference / max(min(one.median_ms, two.median_ms), 1e-9), 2),
                "spread_percent": round(100 * spread / max(one.median_ms, 1e-9), 2),
                "spread_of_samples_ms": max(without),
                "is_within_spread": difference <= spread,
                "is_same": not is_measurable_difference(one, two),
            }


def _spread(timed: Contestant | Samples) -> float:
    spread = timed.spread_ms
    assert spread is not None
    return spread


def between_runs(found: Sequence[Mapping[str, Any]]) -> BetweenRuns:
    """The least that two runs must be allowed, beyond what their samples show, for `GOAL_SHARE` of the pairs to be
    within their spread: of all pairs of a time and a share that are enough, the one whose sum is least at 20 us."""
    candidates = [BetweenRuns(step * 2e-5, share * 1e-3) for step in range(101) for share in range(51)]
    enough = [one for one in candidates if share_within(found, one) >= GOAL_SHARE]
    return min(enough or candidates[-1:], key=lambda one: one.ms + one.share * 0.02)


def share_within(found: Sequence[Mapping[str, Any]], between: BetweenRuns) -> float:
    """The share of pairs that are within the spread that they would have with this."""
    within = [
        abs(pair["ms"][0] - pair["ms"][1])
        <= math.hypot(pair["spread_of_samples_ms"], between.ms + between.share * max(pair["ms"]))
        for pair in found
    ]
    return sum(within) / max(len(within), 1)


def counted(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "pairs": len(found),
        "within_spread": sum(one["is_within_spread"] for one in found),
        "same_by_rule": sum(one["is_same"] for one in found),
        "median_spread_percent": statistics.median(one["spread_percent"] for one in found) if found else None,
        "median_percent": statistics.median(one["percent"] for one in found) if found else None,
        "largest_percent": max((one["percent"] for one in found), default=None),
    }


def summary(results: Mapping[str, Any]) -> str:
    beside = results["profiler"]
    needed = BetweenRuns(**results["needed"])
    lines = [
        f"Kernels of {SHORTEST_US:.0f} us and more beside the profiler: {beside['kernels']}, {beside['within_goal']} "
        f"within {GOAL_PERCENT} %; median {beside['median_percent']} %, largest {beside['largest_percent']} %.",
        f"Between runs, fitted to every other pair: {1e3 * needed.ms:.2f} us and {needed.share:.1%}, in which "
        f"{results['needed_elsewhere']:.0%} of the rest are.",
    ]
    for what in ("calls", "kernels"):
        found = results[what]
        lines.append(
            f"Two runs of {what}: {found['pairs']} pairs, {found['within_spread']} within their spread (goal "
            f"{GOAL_SHARE:.0%}), {found['same_by_rule']} the same by the rule; median spread "
            f"{found['median_spread_percent']} %; median {found['median_percent']} %, "
            f"largest {found['largest_percent']} %."
        )
    worst = sorted(results["beside_profiler"], key=lambda one: -abs(one["percent"]))[:10]
    lines += [
        f"  {one['program']} {one['kernel']}: {one['measured_us']} us, profiler {one['profiler_us']} us, "
        f"{one['percent']:+} %"
        for one in worst
    ]
    apart = [one for one in [*results["call_pairs"], *results["kernel_pairs"]] if not one["is_within_spread"]]
    lines += [f"  {one['program']} {one['timed']}: {one['ms']} ms, spread {one['spread_percent']} %" for one in apart]
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
