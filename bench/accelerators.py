"""What each accelerator of the compiler is worth: `python -m bench.accelerators [cuda]`.

Each program is compiled with all of them, and with all but one, in turns in one process: the least processor seconds of
a first call count, and its least wall seconds, as some accelerators have others work meanwhile. On a GPU each first
call begins with empty caches. On a CPU kernels are compiled beforehand, as none of these changes what the C++ compiler
does; a share is of what is left. Small programs are then called many times, and the host's least microseconds count.

Each program has a process of its own, in which what is made once is made before anything counts. On a machine that
does anything else seconds are noise: there, `--calls` counts the functions that a first call calls, of Python's and of
C's, instead. Their number is the same each time, and they take about as long as each other on average.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from bench.contest import fresh_caches, synchronise
from bench.gradients import ForwardAndBackward
from bench.patterns import CASES, Size
from compiler.accelerators import ACCELERATORS, without
from compiler.backend import fusionscope

PATTERNS = "softmax_by_hand layernorm swiglu attention_by_hand cross_entropy bias_gelu_dropout adamw".split()
CALLED, CALLS_IN_A_ROW = 40, 20


@dataclass(frozen=True)
class Program:
    """A function with its inputs, compiled for open sizes where it `is_dynamic`. One that `is_small` takes the host
    longer than the device, so that its calls are timed."""

    name: str
    function: Callable[..., Any]
    inputs: Sequence[Tensor]
    is_dynamic: bool = False
    is_small: bool = False


def programs(device: torch.device) -> list[Program]:
    """Seven patterns; programs of equal parts, of open sizes and of gradients; and some of a few microseconds."""
    size: Size = "full" if device.type == "cuda" else "small"
    cases = {case.name: case for case in CASES}
    patterns = [
        Program(name, cases[name].call(cases[name].function), cases[name].inputs(size, device, 0)) for name in PATTERNS
    ]
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).to(device)
    blocks = [nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(12)]
    images = torch.randn(4, 16, 32, 32, device=device)
    words = torch.randn(4, 32, 128, device=device)
    numbers = torch.randn(64, 64, device=device).abs()
    return [
        *patterns,
        Program("encoder", encoder, [words]),
        Program("encoder of open sizes", encoder, [words], is_dynamic=True),
        Program("encoder with gradients", ForwardAndBackward(encoder), [words]),
        Program("convolutions", nn.Sequential(*copy.deepcopy(blocks)).to(device).eval(), [images]),
        Program("convolutions with gradients", ForwardAndBackward(nn.Sequential(*blocks).to(device)), [images]),
        Program("graph break", branch, [numbers], is_small=True),
        Program("layer norm", layer_norm, [numbers], is_small=True),
        Program("dropout", lambda x: nn.functional.dropout(x.sin(), 0.5), [numbers], is_small=True),
        Program("product", lambda x: torch.relu(x @ x), [numbers], is_small=True),
        Program("small gradients", ForwardAndBackward(layer_norm), [numbers], is_small=True),
    ]


def layer_norm(x: Tensor) -> Tensor:
    return nn.functional.layer_norm(x, (64,)) + 1


def branch(x: Tensor) -> Tensor:
    kept = x.sin()
    if x.sum() > 0:
        return kept * 2
    return kept - 1


@dataclass
class Samples:
    """What was measured with one accelerator off: seconds of the processor and of the wall, of a first call; the
    host's microseconds of a later one."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    call: list[float] = field(default_factory=list)

    def least(self, kind: str) -> float:
        return min(getattr(self, kind), default=float("nan"))


@dataclass(frozen=True)
class Asked:
    device: torch.device
    rounds: int
    accelerators: Sequence[str]
    counts_calls: bool
    seconds: float


def measured(name: str, asked: Asked) -> dict[str, Samples]:
    """Of the program of that name, by what is off; "" where nothing is. No round begins after so many seconds."""
    torch.set_num_threads(1)
    program = next(program for program in programs(asked.device) if program.name == name)
    found = {name: Samples() for name in ("", *asked.accelerators)}
    started = time.monotonic()
    for _ in range(2):
        _measure(program, asked, Samples())
    for number in range(asked.rounds):
        if number and time.monotonic() - started > asked.seconds:
            break
        for off, samples in found.items():
            with without(*filter(None, [off])):
                _measure(program, asked, samples)
    return found


def _measure(program: Program, asked: Asked, samples: Samples) -> None:
    device = asked.device
    torch._dynamo.reset()
    gradients = nullcontext() if isinstance(program.function, ForwardAndBackward) else torch.no_grad()
    with gradients, fresh_caches() if device.type == "cuda" else nullcontext():
        compiled = torch.compile(program.function, backend=fusionscope, dynamic=program.is_dynamic or None)
        if asked.counts_calls:
            with cProfile.Profile() as profile:
                compiled(*program.inputs)
            samples.cpu.append(sum(entry.callcount for entry in profile.getstats()))
            return
        cpu, wall = _processor_seconds(), time.perf_counter()
        compiled(*program.inputs)
        synchronise(device)
        samples.cpu.append(_processor_seconds() - cpu)
        samples.wall.append(time.perf_counter() - wall)
        for _ in range(CALLED * program.is_small):
            synchronise(device)
            started = time.perf_counter()
            for _ in range(CALLS_IN_A_ROW):
                compiled(*program.inputs)
            samples.call.append(1e6 * (time.perf_counter() - started) / CALLS_IN_A_ROW)


def _processor_seconds() -> float:
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def table(results: Mapping[str, Mapping[str, Samples]], names: Sequence[str]) -> str:
    """What each spares: of a first call the mean and the most of all programs, and the most microseconds of a call."""
    lines = ["| accelerator | first call | most, of | wall clock | a call, most, of |", "|---|---|---|---|---|"]
    for name in names:
        seconds, wall, calls = (
            {program: found[name].least(kind) - found[""].least(kind) for program, found in results.items()}
            for kind in ("cpu", "wall", "call")
        )
        shares = {program: spared / results[program][""].least("cpu") for program, spared in seconds.items()}
        walls = [spared / results[program][""].least("wall") for program, spared in wall.items()]
        most = max(shares, key=shares.__getitem__)
        called = {program: spared for program, spared in calls.items() if not math.isnan(spared)}
        slowest = max(called, key=called.__getitem__, default=None)
        of_call = "" if slowest is None else f"{called[slowest]:.2f} us, {slowest}"
        lines.append(
            f"| `{name}` | {mean(shares.values()):.1%} | {shares[most]:.1%}, {most} | {mean(walls):.1%} | {of_call} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.accelerators")
    parser.add_argument("device", nargs="?", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", action="store_true", help="count calls instead of seconds")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--accelerators", default=",".join(ACCELERATORS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other round after these")
    parser.add_argument("--processes", type=int, default=1, help="programs that are measured at the same time")
    given = parser.parse_args(arguments)
    device, names = torch.device(given.device), given.accelerators.split(",")
    asked = Asked(device, given.rounds, names, given.calls, given.seconds)
    wanted = given.only.split(",") if given.only else [program.name for program in programs(torch.device("cpu"))]
    with ProcessPoolExecutor(given.processes, get_context("spawn"), max_tasks_per_child=1) as pool:
        begun = {name: pool.submit(measured, name, asked) for name in wanted}
        results = {name: future.result() for name, future in begun.items()}
    for name, found in results.items():
        what = f"{found[''].least('cpu'):.0f} calls" if given.calls else f"{found[''].least('cpu'):.3f} s"
        print(f"{name}: {what}, a later call {found[''].least('call'):.1f} us")
    print(table(results, names))


if __name__ == "__main__":
    main()
