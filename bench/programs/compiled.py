"""Many programs compiled at once: each through AOTAutograd as torch.compile does it, all kernels by one compiler run.

A program's first call is what captures it, so that call runs the captured graph by ATen; then the kernels of a whole
batch are generated and compiled, and take the graph's place. What is judged is the second call, from Dynamo's guards or
AOTAutograd's wrapper down to the kernels, on fresh inputs. A program for open sizes is called with each of its inputs
first, then judged with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch._functorch.aot_autograd import aot_function

from bench.programs.program import Program, namespace
from compiler.backend import BoxedGraph
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.autograd.fixed_sizes import fix_sizes
from compiler.capture.captured import GraphRunner, Phase
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Generated, Target, compile_graph, generate, lower, observed_compilations, plan
from compiler.devices import device_for
from compiler.fx.fake_values import outside_fake_mode
from compiler.ir.size import Undecided
from compiler.lowering.decompositions import decompositions
from compiler.lowering.unsupported import OpenSizesUnsupported
from compiler.options import Options
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.executable import build_executable
from compiler.schedule.group import Group

CPU = torch.device("cpu")
#: Every so many programs go through Dynamo too; the others start at AOTAutograd, which is several times cheaper.
DYNAMO_EVERY = 10
#: More than programs in any batch.
MOST_COMPILATIONS = 10_000


@dataclass
class Part:
    """One graph of a program, compiled up to its kernels' text; or, without a `runner`, to the end already."""

    graph: torch.fx.GraphModule
    compilation: Generated
    runner: GraphRunner | None

    @property
    def kernels(self) -> list[RenderedKernel]:
        return list(self.compilation.primary.values())

    def finish(self, launchers: dict[str, Callable[..., None]]) -> None:
        """Run kernels from now on, in place of the graph."""
        schedule, memory = self.compilation.schedule, self.compilation.memory
        assert self.runner is not None
        own = {name: launchers[name] for name in self.compilation.primary}
        wrapper = render_wrapper(schedule, memory, self.compilation.primary)
        self.runner.implementation = build_executable(schedule, wrapper, own, CPU).call


@dataclass
class CompiledProgram:
    program: Program
    call: Callable[..., list[Any]]
    device: torch.device = CPU
    parts: list[Part] = field(default_factory=list)
    is_through_dynamo: bool = False

    @property
    def captured(self) -> list[Tensor]:
        """The results of its graphs as the graphs have them: fake tensors."""
        nodes = [node for part in self.parts for node in part.graph.graph.output_node().all_input_nodes]
        return [node.meta["val"] for node in nodes if isinstance(node.meta.get("val"), Tensor)]

    def capture(self) -> CompiledProgram:
        for program in self.program.calls:
            self.call(*self._inputs(program))
        return self

    def run(self, program: Program | None = None) -> tuple[list[Any], list[Tensor]]:
        """The results, and the inputs after the call. Raises RuntimeError where the call was captured anew."""
        graphs = len(self.parts)
        inputs = self._inputs(program or self.program)
        results = list(self.call(*inputs))
        if len(self.parts) > graphs:
            raise RuntimeError("the second call was captured anew, so that the kernels of the first did not run")
        return results, inputs

    def _inputs(self, program: Program) -> list[Tensor]:
        scope = namespace()
        exec(program.make_inputs, scope)
        made = scope["inputs"]()  # type: ignore[operator]
        return made if self.device == CPU else [moved(tensor, self.device) for tensor in made]


def capture(program: Program, through_dynamo: bool, wants_triton: bool = False) -> CompiledProgram:
    """Everything up to the text of kernels. Only Dynamo has the guards that open sizes need."""
    function = _function(program)
    parts: list[Part] = []

    def compile_part(graph: torch.fx.GraphModule, *_: Any) -> GraphRunner:
        runner = GraphRunner(graph)
        parts.append(Part(graph, _generate(graph, f"p{program.seed}_{len(parts)}_", wants_triton), runner))
        return runner

    if through_dynamo or program.is_open:
        call = _through_dynamo(function, compile_part, program.is_open)
    else:

        def compile_directly(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> GraphRunner:
            with outside_fake_mode():
                return compile_part(gm)

        call = aot_function(
            function, compile_directly, decompositions=decompositions(), inference_compiler=compile_directly
        )
    return CompiledProgram(program, call, CPU, parts, through_dynamo or program.is_open).capture()


def capture_on(program: Program, device: torch.device) -> CompiledProgram:
    """`torch.compile` as anyone would call it, on another device; its first call compiles."""
    parts: list[Part] = []

    def compile_part(graph: torch.fx.GraphModule, _phase: Phase) -> BoxedGraph:
        with observed_compilations(lambda made: parts.append(Part(graph, made, None))):
            return BoxedGraph(compile_graph(graph, Options(), device))

    call = _through_dynamo(_function(program), compile_part, program.is_open)
    return CompiledProgram(program, call, device, parts, True).capture()


def _function(program: Program) -> Any:
    scope = namespace()
    exec(program.function, scope)
    return scope["program"]


def _through_dynamo(function: Any, compile_part: Any, is_open: bool) -> Any:
    """`torch.compile` of the whole function, or an error: past its limit of compilations, which all functions of a
    batch share (they are called through one frame of Dynamo's), it would go on in eager and prove nothing."""

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        return compile_through_aot(graph, inputs, compile_part)

    compiled = torch.compile(function, backend=backend, dynamic=is_open, fullgraph=True)

    def call(*inputs: Tensor) -> Any:
        with compilations_unlimited():
            return compiled(*inputs)

    return call


def compilations_unlimited() -> AbstractContextManager[Any]:
    """Dynamo's limits lifted: past them it runs what it was given in eager, without a word."""
    limits = {"recompile_limit": MOST_COMPILATIONS, "accumulated_recompile_limit": MOST_COMPILATIONS}
    return torch._dynamo.config.patch(limits)


def by_pytorch(program: Program) -> list[Tensor]:
    """The results, then the inputs after the call, of the graph that AOTAutograd captures, run by PyTorch."""
    scope = namespace()
    exec(program.make_inputs + program.function, scope)

    def run_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> torch.fx.GraphModule:
        return gm

    call: Callable[..., Any] = aot_function(scope["program"], run_graph, inference_compiler=run_graph)  # type: ignore[arg-type]
    inputs = scope["inputs"]()  # type: ignore[operator]
    return [*call(*inputs), *inputs]


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on another device with the strides that it has here."""
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    return tensor.as_strided((extent,), (1,)).to(device).as_strided(tensor.shape, tensor.stride())


def _generate(graph: torch.fx.GraphModule, prefix: str, wants_triton: bool) -> Generated:
    try:
        return _generated(graph, prefix, wants_triton)
    except (Undecided, OpenSizesUnsupported):
        if not fix_sizes(graph):  # as `compile_graph` does
            raise
        return _generated(graph, prefix, wants_triton)


def _generated(graph: torch.fx.GraphModule, prefix: str, wants_triton: bool) -> Generated:
    planned = plan(lower(graph, Target(CPU, device_for("sm_90" if wants_triton else CPU), Options())))
    # Kernels of all programs go into one library, so their names must differ.
    units = [
        replace(unit, name=prefix + unit.name) if isinstance(unit, Group) else unit for unit in planned.schedule.units
    ]
    renamed = replace(planned, schedule=replace(planned.schedule, units=tuple(units)))
    return generate(renamed, wants_triton=wants_triton)


def finish(programs: Sequence[CompiledProgram]) -> None:
    """Compile the kernels of all programs at once."""
    parts = [part for program in programs for part in program.parts if part.runner is not None]
    launchers = compile_kernels([kernel for part in parts for kernel in part.kernels])
    for part in parts:
        part.finish(launchers)
