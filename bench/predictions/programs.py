"""The programs whose kernels are predicted and timed, as ATen graphs: the patterns, the snippets, the micro cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.patterns import PATTERNS, Case, Size
from bench.predictions.micro import CHOICES, SINGLE
from bench.snippets import FOLDER
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.capture import capture
from compiler.capture.captured import GraphRunner, Phase
from compiler.options import Options


@dataclass(frozen=True)
class Program:
    """Where graphs come from: a function with inputs, or the file of a snippet. Its name is `suite/case`. One without
    choices is measured as it is scheduled."""

    name: str
    case: Case | None = None
    file: Path | None = None
    has_choices: bool = True

    @property
    def suite(self) -> str:
        return self.name.partition("/")[0]


@dataclass
class RecordedGraph:
    """One ATen graph of a program with the inputs of its first call."""

    program: Program
    name: str
    aten: torch.fx.GraphModule
    inputs: list[Any]


def programs() -> dict[str, Program]:
    """All of them, by name."""
    found = [Program(f"patterns/{name}", case) for name, case in PATTERNS.items()]
    found += [Program(f"snippets/{file.stem}", file=file) for file in sorted(FOLDER.glob("*.py"))]
    found += [Program(f"micro/{case.name}", case, has_choices=False) for case in SINGLE]
    found += [Program(f"micro/{case.name}", case) for case in CHOICES]
    return {program.name: program for program in found}


def record(program: Program, size: Size, device: torch.device, seed: int) -> list[RecordedGraph]:
    """The graphs that one call of the program makes, after that call was run operator by operator."""
    if program.file is not None:
        return list(_record_snippet(program, program.file, device, seed))
    assert program.case is not None
    torch.manual_seed(seed)
    return _record_function(program, program.case.function, program.case.inputs(size, device, seed))


def _record_snippet(program: Program, file: Path, device: torch.device, seed: int) -> Iterator[RecordedGraph]:
    captured = capture(file.read_text(), Options(device=device.type, seed=seed), device)
    for graph in captured.graphs:
        if graph.inputs is not None:
            yield RecordedGraph(program, graph.name, graph.aten, graph.inputs)


def _record_function(program: Program, function: Callable[..., Any], inputs: Sequence[Any]) -> list[RecordedGraph]:
    runners: list[tuple[torch.fx.GraphModule, GraphRunner]] = []

    def keep(part: torch.fx.GraphModule, _phase: Phase) -> GraphRunner:
        runner = GraphRunner(part)
        runners.append((part, runner))
        return runner

    def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_through_aot(graph, example_inputs, keep)

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend)(*inputs)
    torch._dynamo.reset()
    return [
        RecordedGraph(program, f"graph{number}", part, runner.first_inputs)
        for number, (part, runner) in enumerate(runners)
        if runner.first_inputs is not None
    ]
