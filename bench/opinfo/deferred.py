"""Many samples through the compiler, with one run of the C++ compiler for the kernels of all of them.

A sample goes the way of `torch.compile(f, backend="fusionscope")` from AOTAutograd on: `compile_through_aot`, lowering,
scheduling, code generation. Only the last step waits: `build_all` compiles the kernels of all samples at once, each
under a name of its own, since one start of the C++ compiler costs as much as compiling many kernels. On a GPU there is
nothing to gain by that, and Triton compiles each kernel as usual.

Operators that AOTAutograd cannot trace as a whole, because they look at values, go through TorchDynamo first, which
breaks the graph there as it does for any user. During that first call PyTorch runs the graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.utils._pytree import tree_leaves

from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.torch_internals import lazy_backward_off
from compiler.codegen.naming import identifier
from compiler.codegen.rendered import RenderedKernel
from compiler.codegen.wrapper import render_wrapper
from compiler.compile import Target, build, generate, lower, plan
from compiler.devices import device_for
from compiler.fx.fake_values import device_of
from compiler.ir.nodes import ExternNode, LoopGraph
from compiler.options import Options
from compiler.runtime.cpp.compiler import CompilationFailed
from compiler.runtime.cpp.library import compile_kernels
from compiler.runtime.executable import build_executable


class DeferredGraph:
    """One ATen graph: compiled up to its kernels' text, to be built later. Until then PyTorch runs it."""

    def __init__(self, part: GraphModule) -> None:
        device = device_of(part)
        self._boxed_call = True
        self.part = part
        self.call: Callable[[list[Any]], list[Any]] | None = None
        self.error: str | None = None
        self.fallbacks: dict[str, str] = {}
        try:
            planned = plan(lower(part, Target(device, device_for(device), Options())))
            self.fallbacks = _fallbacks(part, planned.loops)
            self.compilation = generate(planned, wants_triton=device.type == "cuda")
        except Exception as error:
            self.error = f"{type(error).__name__}: {_first_line(error)}"

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.call is None:
            return self.part(*inputs)
        return self.call(list(inputs))

    def named_kernels(self) -> dict[str, RenderedKernel]:
        """Its kernels by their own names, each renamed after its text: equal kernels are compiled once."""
        return {name: _renamed(kernel) for name, kernel in self.compilation.primary.items()}

    def build(self, launchers: dict[str, Callable[..., None]]) -> None:
        compilation = self.compilation
        wrapper = render_wrapper(compilation.schedule, compilation.memory, compilation.primary)
        self.call = build_executable(compilation.schedule, wrapper, launchers, compilation.runs_on).call


def _fallbacks(part: GraphModule, loops: LoopGraph) -> dict[str, str]:
    """The reason of each call of PyTorch's own for want of a lowering, by the node that it is for. Calls on complex
    numbers, which no compiler's loops compute with, are left out."""
    found = [node for node in loops.nodes if isinstance(node, ExternNode) and node.is_fallback]
    reasons = {origin: node.reason for node in found for origin in node.origins}
    nodes = {node.name: node for node in part.graph.nodes}
    return {name: reason for name, reason in reasons.items() if not _is_complex(nodes[name])}


def _is_complex(node: torch.fx.Node) -> bool:
    """Whether it reads or makes complex numbers."""
    tensors = [value for one in (node, *node.all_input_nodes) for value in tree_leaves(one.meta.get("val"))]
    return any(isinstance(tensor, Tensor) and tensor.is_complex() for tensor in tensors)


def _holds_sparse(part: GraphModule) -> bool:
    values = [value for node in part.graph.nodes for value in tree_leaves(node.meta.get("val"))]
    return any(isinstance(value, Tensor) and value.layout != torch.strided for value in values)


def _renamed(kernel: RenderedKernel) -> RenderedKernel:
    old = identifier(kernel.name)
    name = f"{old}_{hashlib.sha256(kernel.source.encode()).hexdigest()[:16]}"
    return replace(kernel, name=name, source=kernel.source.replace(f"void {old}(", f"void {name}(", 1))


@dataclass
class Compiled:
    """A function, compiled: call it with tensors. `graphs` are what it became."""

    function: Callable[..., Sequence[Any]]
    graphs: list[DeferredGraph] = field(default_factory=list)
    #: Whether TorchDynamo had to break it up first.
    is_broken: bool = False

    @property
    def error(self) -> str | None:
        return next((graph.error for graph in self.graphs if graph.error), None)

    @property
    def packets(self) -> dict[str, str | None]:
        """The ATen operators in its graphs, before and after decomposition, with the reason why one falls back."""
        found: dict[str, str | None] = {}
        for graph in self.graphs:
            reasons = graph.fallbacks
            for node in graph.part.graph.nodes:
                for target in (node.target, node.meta.get("original_aten")):
                    if node.op == "call_function" and isinstance(target, OpOverload):
                        name = target.overloadpacket.__name__
                        found[name] = found.get(name) or reasons.get(node.name)
        return found


class _Operator(torch.nn.Module):
    """The function as a module, which is how a graph can call anything at all."""

    def __init__(self, function: Callable[..., list[Any]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> tuple[Any, ...]:
        return tuple(self.function(*tensors))


def prepare(function: Callable[..., list[Any]], tensors: Sequence[Tensor], is_whole: bool = True) -> Compiled:
    """Everything up to the kernels' text, forward and, where a tensor wants a gradient, backward.

    Where the function is not `is_whole`, since parts of it are for PyTorch alone (sparse tensors), TorchDynamo finds
    those that are not. Raises what capturing raises, a ValueError among it where a whole graph holds sparse tensors."""
    compiled = Compiled(function)

    def keep(part: GraphModule, _phase: Any) -> DeferredGraph:
        if not compiled.is_broken and _holds_sparse(part):
            raise ValueError("a whole graph holds sparse tensors, which TorchDynamo would have left to PyTorch")
        compiled.graphs.append(DeferredGraph(part))
        return compiled.graphs[-1]

    if not is_whole:
        return _through_dynamo(function, tensors, keep, compiled)
    try:
        with lazy_backward_off():
            compiled.function = compile_through_aot(_one_call(function, tensors), list(tensors), keep)
        return compiled
    except Exception as error:
        if isinstance(error, torch.cuda.OutOfMemoryError):
            raise
    return _through_dynamo(function, tensors, keep, compiled)


def _through_dynamo(
    function: Callable[..., list[Any]], tensors: Sequence[Tensor], keep: Any, compiled: Compiled
) -> Compiled:
    torch._dynamo.reset()
    compiled.graphs.clear()
    compiled.is_broken = True

    def backend(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        return compile_through_aot(graph, examples, keep)

    compiled.function = torch.compile(function, backend=backend, dynamic=False)
    with lazy_backward_off():
        compiled.function(*tensors)
    return compiled


def _one_call(function: Callable[..., list[Any]], tensors: Sequence[Tensor]) -> GraphModule:
    graph = Graph()
    placeholders = tuple(graph.placeholder(f"x{place}") for place in range(len(tensors)))
    graph.output(graph.call_module("operator", placeholders))
    return GraphModule({"operator": _Operator(function)}, graph)


def build_all(compiled: Sequence[Compiled]) -> None:
    """Compile the kernels of all and make every graph callable. A graph that cannot be built keeps its error."""
    graphs = [graph for one in compiled for graph in one.graphs if graph.error is None]
    on_cpu = [graph for graph in graphs if graph.compilation.runs_on.type == "cpu"]
    kernels = {kernel.name: kernel for graph in on_cpu for kernel in graph.named_kernels().values()}
    try:
        launchers = compile_kernels(list(kernels.values())) if kernels else {}
    except CompilationFailed:
        launchers = {}  # one of them is at fault: each graph on its own tells which
    for graph in graphs:
        try:
            if graph.compilation.runs_on.type == "cuda" or not launchers:
                graph.call = build(graph.compilation).executable.call
            else:
                graph.build({name: launchers[kernel.name] for name, kernel in graph.named_kernels().items()})
        except Exception as error:
            graph.error = f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"
