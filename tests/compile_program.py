"""Compile a Python function for tests: trace it as AOTAutograd would, and keep what every stage made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from compiler.capture.autograd.aot import compile_through_aot
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated, Planned, Target, generate, lower, plan
from compiler.devices import device_for
from compiler.ir.nodes import Layout
from compiler.ir.size import Integer, known
from compiler.options import Options
from compiler.runtime.executable import build_executable
from compiler.runtime.interpreter.interpreter import interpret
from compiler.runtime.triton.offline import OfflineResult, compile_offline
from compiler.schedule.cost.moved import moved_by
from tests.codegen.triton.spec import violations


def known_sizes(sizes: Sequence[Integer]) -> tuple[int, ...]:
    """Sizes that are numbers all, as torch takes them. Raises `Undecided` where one is known only in a call."""
    return tuple(known(size) for size in sizes)


def empty_of(layout: Layout) -> torch.Tensor:
    """A contiguous tensor of the shape and dtype of a buffer whose sizes are numbers. Raises `Undecided`."""
    return torch.empty(known_sizes(layout.shape), dtype=layout.dtype)


class _Captured(Exception):
    """Ends a call of which only the graph is wanted."""


def capture_graph(function: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> torch.fx.GraphModule:
    """The functional ATen graph of `function` on `inputs`, as the backend gets it. It is not run: sizes at which GPUs
    matter would take a CPU gigabytes."""
    found: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        found.append(graph)
        return stop

    def stop(*_: Any) -> None:
        raise _Captured

    def backend(graph: torch.fx.GraphModule, examples: Any) -> Callable[..., Any]:
        return compile_through_aot(graph, examples, keep)

    torch._dynamo.reset()
    with torch.no_grad(), suppress(_Captured):
        torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)(*inputs)
    (graph,) = found
    return graph


def compile_program(
    function: Callable[..., Any], *inputs: Any, target: str = "sm_90", dynamic: bool = False, **knobs: Any
) -> Generated:
    """Everything up to kernels' text, for the CPU and for `target`."""
    return compile_graph(capture_graph(function, *inputs, dynamic=dynamic), target, **knobs)


def compile_graph(graph: torch.fx.GraphModule, target: str = "sm_90", **knobs: Any) -> Generated:
    """The same of a graph that was captured."""
    aim = Target(torch.device("cpu"), device_for(target), Options(knobs=knobs))
    return generate(plan(lower(graph, aim)), wants_triton=True)


def compiled_for_gpus(compilation: Generated, target: str = "sm_90") -> list[OfflineResult]:
    """What Triton and the assembler make of each kernel, where they refuse none."""
    storage = compilation.schedule.graph.dtypes
    results = [compile_offline(kernel, storage, target) for kernel in compilation.triton.values()]
    assert [result.error for result in results if result.error is not None] == []
    return results


def kernel_count(compilation: Planned) -> tuple[int, int]:
    """How many kernels are generated, and how many library calls there are."""
    groups = len(compilation.groups)
    return groups, len(compilation.schedule.units) - groups


def bytes_moved(compilation: Generated) -> int:
    """Bytes that all kernels and library calls read and write."""
    layouts = compilation.schedule.graph.buffers
    return sum(moved_by(unit, layouts).bytes for unit in compilation.schedule.units)


def call_interpreted(compilation: Generated, inputs: Sequence[Any]) -> list[Any]:
    """Run the wrapper with every Triton kernel in Triton's interpreter."""
    wrapper = render_wrapper(compilation.schedule, compilation.memory, compilation.triton)
    kernels = {name: partial(_interpret, kernel) for name, kernel in compilation.triton.items()}
    return build_executable(compilation.schedule, wrapper, kernels, torch.device("cpu")).call(list(inputs))


def _interpret(kernel: RenderedKernel, *tensors: torch.Tensor) -> None:
    assert violations(kernel) == []
    interpret(kernel, list(tensors))
