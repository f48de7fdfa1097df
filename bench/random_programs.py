"""The random suite: programs by seed, compiled and judged, in processes of their own.

Every program goes from its source through AOTAutograd (every tenth through Dynamo as well), lowering, scheduling and
code generation; on a CPU the kernels of a batch are compiled by one run of the C++ compiler with the flags that all
kernels are compiled with, on a GPU every program is compiled by `torch.compile(backend="fusionscope")`. With
`--open-sizes` all go through Dynamo with `dynamic=True` and are called at two sizes. What is
compared are results, inputs after the call, strides, and which tensors share memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Console

from bench.environment import commit, write_json
from bench.programs.check import Failure, Outcome
from bench.programs.generate import generate, with_open_sizes

METHOD = (
    "Each program is run by eager PyTorch, in float64, and in float64 with random noise of one epsilon in every step "
    "that rounds. Values that no rounding touches must be equal bit by bit; others may be off by 30 times the largest "
    "difference that eager or the noise shows in that tensor, plus 8 roundings of its largest element."
)
#: A batch that takes longer hangs.
SECONDS_OF_A_PROGRAM = 30


@dataclass(frozen=True)
class Request:
    programs: int
    seed: int = 0
    device: str = "cpu"
    processes: int = 1
    batch: int = 100
    most_statements: int = 30
    is_open: bool = False

    def batches(self) -> list[range]:
        seeds = range(self.seed, self.seed + self.programs)
        return [seeds[start : start + self.batch] for start in range(0, len(seeds), self.batch)]


def run(asked: argparse.Namespace, device: str, console: Console) -> int:
    """The command: 0 if every program gave what it must, else 1."""
    request = Request(asked.programs, asked.seed, device, asked.processes, is_open=asked.open_sizes)
    environment = {"device": device, "torch": torch.__version__, "commit": commit()}

    def on_result(document: dict[str, Any]) -> None:
        write_json(asked.out, {"suite": "random", "environment": environment, **document})
        done, failed = document["counts"].get("programs", 0), len(document["failures"])
        print(f"{done} of {request.programs}, {failed} failures", file=sys.stderr, flush=True)

    document = run_random(request, on_result)
    for failure in document["failures"]:
        console.print(f"seed {failure['seed']}, {failure['kind']}:", *failure["problems"], markup=False)
        console.print(failure["script"], markup=False)
    counts = ", ".join(f"{count} {name}" for name, count in document["counts"].items())
    console.print(f"{counts}; {document['wrong']} wrong, {document['failed']} failed, {document['crashed']} crashed.")
    return 0 if not document["failures"] else 1


def run_random(request: Request, on_result: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Check all programs; `on_result` gets the document so far after every batch."""
    total = Outcome()
    document = describe(total, request)
    with ThreadPoolExecutor(request.processes) as pool:
        waiting = [pool.submit(check_apart, seeds, request) for seeds in request.batches()]
        for done in as_completed(waiting):
            total.add(done.result())
            document = describe(total, request)
            on_result(document)
    return document


def describe(total: Outcome, request: Request) -> dict[str, Any]:
    failures = sorted(total.failures, key=lambda failure: failure.seed)
    return {
        "method": METHOD,
        "request": asdict(request),
        "counts": dict(total.counts),
        "process_seconds": round(total.seconds, 1),
        "wrong": sum(failure.kind == "wrong" for failure in failures),
        "failed": sum(failure.kind == "failed" for failure in failures),
        "crashed": sum(failure.kind == "crashed" for failure in failures),
        "failures": [asdict(failure) for failure in failures],
    }


def check_apart(seeds: range, request: Request) -> Outcome:
    """`check` in a process of its own; where that ends early, the batch is halved until the program is found."""
    command = [sys.executable, "-m", "bench.programs.check", str(seeds.start), str(len(seeds)), request.device]
    limit = 120 + SECONDS_OF_A_PROGRAM * len(seeds)
    try:
        ended = subprocess.run(
            [*command, str(request.most_statements), *["open"] * request.is_open],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        if ended.returncode == 0:
            return _read(ended.stdout)
        said = f"the process ended with {ended.returncode}: {ended.stderr[-2000:]}"
    except subprocess.TimeoutExpired:
        said = f"no end after {limit} seconds"
    if len(seeds) == 1:
        program = generate(seeds.start, request.most_statements)
        program = with_open_sizes(program) if request.is_open else program
        return Outcome(Counter(programs=1), [Failure(seeds.start, "crashed", [said], program.script(request.device))])
    halves = Outcome()
    for half in _halves(seeds):
        halves.add(check_apart(half, request))
    return halves


def _halves(seeds: range) -> Iterator[range]:
    middle = len(seeds) // 2
    yield seeds[:middle]
    yield seeds[middle:]


def _read(text: str) -> Outcome:
    found = json.loads(text.splitlines()[-1])
    return Outcome(Counter(found["counts"]), [Failure(**f) for f in found["failures"]], found["seconds"])
