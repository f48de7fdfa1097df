"""One batch of random programs, compiled together and judged; `python -m bench.programs.check` in a process of its own.

    python -m bench.programs.check FIRST COUNT DEVICE MOST_STATEMENTS [open]

writes what it found to standard output, as JSON. A kernel that writes where it must not may end the process, which is
why the suite does not do this in its own.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

import torch

from bench.programs.compiled import (
    DYNAMO_EVERY,
    CompiledProgram,
    capture,
    capture_on,
    compilations_unlimited,
    finish,
)
from bench.programs.generate import generate, with_open_sizes
from bench.programs.judge import mistakes
from bench.programs.program import Program, namespace
from bench.programs.shrink import shrink
from bench.programs.worlds import run
from compiler.ir.nodes import ExternNode

#: Failures of one batch that are made small; each takes up to a minute.
MOST_SHRUNK = 2


@dataclass(frozen=True)
class Failure:
    seed: int
    #: "wrong", "failed" (an exception of ours) or "crashed" (the process ended).
    kind: str
    problems: list[str]
    #: The smallest program found that fails in the same way, as a file to run.
    script: str


@dataclass
class Outcome:
    """What became of a batch. `counts` has programs, statements, graphs, kernels, library calls, and so on."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Outcome) -> None:
        self.counts += other.counts
        self.failures += other.failures
        self.seconds += other.seconds


def check(seeds: range, device: str = "cpu", most_statements: int = 30, is_open: bool = False) -> Outcome:
    """Generate, compile, run and judge the programs of `seeds`, with `is_open` for sizes left open."""
    started = time.perf_counter()
    outcome = Outcome()
    # Once: a reset between two programs would have the first one captured anew.
    torch._dynamo.reset()
    compiled = []
    for seed in seeds:
        program = generate(seed, most_statements)
        program = with_open_sizes(program) if is_open else program
        try:
            compiled.append(_capture(program, device))
        except Exception:
            _fail_or_refuse(outcome, program, [traceback.format_exc(limit=-3)], device)
    for whole in _finished(compiled, outcome, device):
        problems, kind = _judge(whole)
        if kind == "failed":
            _fail_or_refuse(outcome, whole.program, problems, device)
            continue
        _count(outcome.counts, whole)
        if problems:
            _fail(outcome, whole.program, kind, problems, device)
    outcome.seconds = time.perf_counter() - started
    return outcome


def is_refused_by_pytorch(program: Program, device: str = "cpu") -> bool:
    """Whether PyTorch fails on that device without a compiler of ours.

    Eager may lack an operator for a dtype there, and functionalisation has limits of its own.
    """
    scope = namespace()
    exec(program.function, scope)
    function = scope["program"]
    try:
        for call in (function, torch.compile(function, backend="aot_eager", dynamic=program.is_open)):  # type: ignore
            with compilations_unlimited():
                CompiledProgram(program, call, torch.device(device)).capture()  # type: ignore[arg-type]
    except Exception:
        return True
    return False


def _capture(program: Program, device: str) -> CompiledProgram:
    if device != "cpu":
        return capture_on(program, torch.device(device))
    return capture(program, through_dynamo=program.seed % DYNAMO_EVERY == 0)


def _finished(compiled: list[CompiledProgram], outcome: Outcome, device: str) -> list[CompiledProgram]:
    """All that compile: together, or where that fails one by one."""
    with suppress(Exception):
        finish(compiled)
        return compiled
    done = []
    for one in compiled:
        try:
            finish([one])
            done.append(one)
        except Exception:
            _fail_or_refuse(outcome, one.program, [traceback.format_exc(limit=-3)], device)
    return done


def _judge(compiled: CompiledProgram) -> tuple[list[str], str]:
    problems: list[str] = []
    for program in compiled.program.calls:
        try:
            results, inputs = compiled.run(program)
        except Exception:
            return [traceback.format_exc(limit=-3)], "failed"
        worlds = run(program)
        found = mistakes(program, worlds, results, inputs, () if program.is_open else compiled.captured)
        if found and program.is_open:  # a graph of open sizes does not tell the strides at these
            fixed = capture(replace(program, is_open=False, larger_inputs=()), through_dynamo=False)
            found = mistakes(program, worlds, results, inputs, fixed.captured)
        problems += found
    return problems, "wrong"


def _count(counts: Counter[str], compiled: CompiledProgram) -> None:
    counts["programs"] += 1
    counts["statements"] += len(compiled.program.statements)
    counts["writes"] += sum(statement.is_write for statement in compiled.program.statements)
    counts["through Dynamo"] += compiled.is_through_dynamo
    counts["of two sizes"] += bool(compiled.program.larger_inputs)
    for part in compiled.parts:
        schedule = part.compilation.schedule
        calls = [unit for unit in schedule.units if isinstance(unit, ExternNode)]
        counts["graphs"] += 1
        counts["kernels"] += len(part.kernels)
        counts["loop nodes"] += sum(not isinstance(node, ExternNode) for node in schedule.graph.nodes)
        counts["library calls"] += len(calls)
        counts["operators without a lowering"] += sum(call.is_fallback for call in calls)


def _fail_or_refuse(outcome: Outcome, program: Program, problems: list[str], device: str) -> None:
    if is_refused_by_pytorch(program, device):
        outcome.counts["refused by PyTorch"] += 1
    else:
        _fail(outcome, program, "failed", problems, device)


def _fail(outcome: Outcome, program: Program, kind: str, problems: list[str], device: str) -> None:
    if len(outcome.failures) < MOST_SHRUNK:
        program = shrink(program, _fails_as(kind, device), most_tries=60)
    outcome.failures.append(Failure(program.seed, kind, problems, program.script(device)))


def _fails_as(kind: str, device: str) -> Callable[[Program], bool]:
    def fails(program: Program) -> bool:
        try:
            compiled = _capture(program, device)
            finish([compiled])
        except Exception:
            return kind == "failed" and not is_refused_by_pytorch(program, device)
        problems, found = _judge(compiled)
        return bool(problems) and found == kind

    return fails


def main(arguments: list[str]) -> None:
    first, count, device, most_statements = int(arguments[0]), int(arguments[1]), arguments[2], int(arguments[3])
    is_open = arguments[4:] == ["open"]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = check(range(first, first + count), device, most_statements, is_open)
    failures = [asdict(failure) for failure in found.failures]
    print(json.dumps({"counts": found.counts, "failures": failures, "seconds": found.seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
