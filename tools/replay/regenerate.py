"""One tree's programs through that tree's compiler: `python -P tools/replay/regenerate.py goldens FILE [NAME ...]`.

It runs in a process of its own with that tree on PYTHONPATH, and writes to FILE, for each program, what `replayed`
gives. It may be lent to a tree that is older than itself, so it imports nothing of `tools`, and of the rest as little
as it can.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any


def main(kind: str, file: str, names: Sequence[str]) -> None:
    tree = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]).resolve()
    import compiler

    # An installed compiler in the place of the tree's would make every comparison come out equal.
    loaded = Path(compiler.__file__).resolve().parent.parent
    if loaded != tree:
        raise SystemExit(f"the compiler was loaded from {loaded}, not from {tree}")
    programs = KINDS[kind]()
    found = {name: attempt(*program) for name, program in programs if not names or name in names}
    Path(file).write_text(json.dumps(found, indent=1), encoding="utf-8")


def attempt(source: str, compile_it: Callable[[], list[Any]]) -> dict[str, Any]:
    """What became of one program; of one that cannot be compiled, the error."""
    try:
        return {"source": source, **replayed(compile_it())}
    except Exception as error:
        return {"source": source, "error": f"{type(error).__name__}: {error}"}


def goldens() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The programs of `tests/goldens`: name, source, how to compile it."""
    from tests.compile_program import compile_program
    from tests.goldens.test_goldens import CASES

    def compile_it(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
        return [compile_program(function, *inputs)]

    for name, (function, inputs) in CASES.items():
        shapes = [f"{one.dtype}{list(one.shape)}" for one in inputs]
        yield name, (_source(function, shapes), partial(compile_it, function, inputs))


def fusion() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The programs of `bench/fusion`, at their large sizes; forward and backward where there are gradients."""
    from bench.fusion.table import PROGRAMS

    return _of_table(PROGRAMS)


def products() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The same of convolutions, and of products of odd sizes."""
    from bench.programs.products import PROGRAMS

    return _of_table(PROGRAMS)


def wide() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The programs of `bench/wide`, at the sizes that a GPU is measured with; forward and backward where there are
    gradients."""
    from bench.wide import WIDE

    return _of_cases(WIDE)


def patterns() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The same of the patterns that are measured against TorchInductor."""
    from bench.patterns import PATTERNS

    return _of_cases(PATTERNS)


def models() -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    """The models of `bench/models`, as small as they are tested; forward and backward of those that are trained."""
    from bench.models import MODELS

    for name, model in MODELS.items():
        yield name, (inspect.getsource(model.build), partial(_compiled_model, model))


def _compiled_model(model: Any) -> list[Any]:
    import torch

    from bench.fusion.count import scheduled
    from bench.models.model import loss_of
    from compiler.compile import generate

    example = model.example("small", torch.device("cpu"), 0)
    inputs = example.inputs(2, torch.Generator().manual_seed(0))

    def call(compiled: Callable[..., Any], _: Sequence[Any]) -> None:
        with torch.set_grad_enabled(model.is_trained):
            outputs = compiled(**inputs)
            if model.is_trained:
                loss_of(outputs).backward()

    planned = scheduled(example.module, list, call)
    return [generate(one, wants_triton=True) for one in planned]


def _of_cases(cases: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    import torch

    from bench.fusion.count import scheduled
    from compiler.compile import generate

    def empty(one: Any) -> torch.Tensor:
        of_index = torch.int64 if one.dtype.is_floating_point else one.dtype
        return torch.empty(one.shape, dtype={"mask": torch.bool, "index": of_index}.get(one.kind, one.dtype))

    def call(case: Any) -> Callable[[Callable[..., Any], list[torch.Tensor]], Any]:
        return lambda compiled, inputs: case.call(compiled)(*inputs)

    def compile_it(case: Any) -> list[Any]:
        with torch.set_grad_enabled(case.has_gradients):
            planned = scheduled(case.function, lambda: [empty(one) for one in case.full], call(case))
        return [generate(one, wants_triton=True) for one in planned]

    for name, case in cases.items():
        shapes = [f"{one.dtype}{list(one.shape)}" for one in case.full]
        yield name, (_source(case.function, shapes), partial(compile_it, case))


def _of_table(programs: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Callable[[], list[Any]]]]]:
    from bench.fusion.count import schedules_of
    from compiler.compile import generate

    def compile_it(program: Any) -> list[Any]:
        return [generate(planned, wants_triton=True) for planned in schedules_of(program)]

    for name, program in programs.items():
        shapes = [f"{one.dtype}[{one.shape}]" for one in program.inputs]
        yield name, (_source(program.function, shapes), partial(compile_it, program))


def _source(function: Callable[..., Any], shapes: Sequence[str]) -> str:
    """The program's own text: when that has changed, other kernels are no news of the compiler."""
    return f"{inspect.getsource(function)}\n# on {', '.join(shapes)}\n"


def replayed(compilations: Sequence[Any]) -> dict[str, Any]:
    """Counts, bytes, the texts by their names, and the last answer for each pair of nodes."""
    from compiler.codegen.wrapper import render_wrapper
    from compiler.schedule.describe.decisions import describe_all
    from tests.compile_program import bytes_moved, kernel_count

    figures = {"kernels": 0, "library_calls": 0, "bytes": 0}
    texts: dict[str, str] = {}
    decisions: dict[str, str] = {}
    for number, compilation in enumerate(compilations):
        prefix = f"graph {number}: " if len(compilations) > 1 else ""
        kernels, library_calls = kernel_count(compilation)
        figures["kernels"] += kernels
        figures["library_calls"] += library_calls
        figures["bytes"] += bytes_moved(compilation)
        texts[f"{prefix}wrapper"] = render_wrapper(compilation.schedule, compilation.memory, compilation.primary)
        for group in compilation.groups:
            for kernel in (compilation.triton[group.name], compilation.cpp[group.name]):
                texts[f"{prefix}{group.name}, {kernel.language}"] = f"{_launch(kernel)}\n{kernel.source}"
        for decision in describe_all(compilation.schedule):
            # A pair may be asked about in several rounds: what was answered last is what holds.
            decisions[f"{prefix}{decision.a} + {decision.b}"] = f"{decision.verdict}: {decision.reason}"
    return {"figures": figures, "texts": texts, "decisions": decisions}


def _launch(kernel: Any) -> str:
    """How many programs a launch of the kernel has, and with what: blocks, warps, stages."""
    settings = ", ".join(f"{name} {value}" for name, value in sorted(kernel.config.items()))
    return f"# grid {kernel.grid}" + (f", {settings}" if settings else "")


KINDS = {
    "goldens": goldens,
    "fusion": fusion,
    "products": products,
    "patterns": patterns,
    "wide": wide,
    "models": models,
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
