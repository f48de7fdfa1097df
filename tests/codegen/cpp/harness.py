"""Running loop nodes and hand-made groups through C++, many in one compilation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import torch

from compiler.codegen.cpp.render import render_cpp
from compiler.codegen.rendered import RenderedKernel
from compiler.ir import interpret
from compiler.ir.body import trace
from compiler.ir.index import Dim
from compiler.ir.nodes import Layout, LoopGraph, LoopNode
from compiler.ir.size import Integer, known
from compiler.lowering.lower import lower
from compiler.runtime.cpp import compiler as cpp_compiler
from compiler.runtime.cpp.library import Kernel, compile_kernels
from compiler.schedule.group import Group, Member, Space
from tests.compile_program import empty_of
from tests.lowering.checks import aten_graph


def node(
    name: str,
    shape: tuple[Integer, ...],
    dtype: torch.dtype,
    x: tuple[Dim, ...],
    r: tuple[Dim, ...],
    body: Callable[[], Any],
) -> LoopNode:
    """A node whose buffer is contiguous."""
    return LoopNode(name, Layout.contiguous(shape, dtype), x, r, trace(body))


def group(name: str, x: tuple[Dim, ...], r: tuple[Dim, ...], *nodes: LoopNode, stored: Sequence[str] = ()) -> Group:
    """The nodes as one kernel, which stores its last one or those that are named."""
    return Group(name, Space(x, r), tuple(Member(n, n.body) for n in nodes), frozenset(stored or (nodes[-1].name,)))


def render(made: Group, tensors: dict[str, torch.Tensor]) -> RenderedKernel:
    storage = {name: tensor.dtype for name, tensor in tensors.items()}
    storage |= {member.name: member.node.layout.dtype for member in made.members}
    return render_cpp(made, storage)


def run(made: Group, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the kernel stores, on contiguous inputs."""
    kernel = render(made, tensors)
    layouts = {member.name: member.node.layout for member in made.members}
    outputs = {name: empty_of(layouts[name]) for name in made.stored}
    compile_kernels([kernel])[made.name](*[{**tensors, **outputs}[name] for name in kernel.parameters])
    return outputs


@dataclass
class Lowered:
    """A function lowered for its arguments, each of its loop nodes a kernel of its own."""

    graph: LoopGraph
    kernels: dict[str, RenderedKernel]


def lowered(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> Lowered:
    return render_nodes(lower(aten_graph(function, arguments)))


def render_nodes(graph: LoopGraph) -> Lowered:
    storage = graph.dtypes
    return Lowered(graph, {item.name: render_node(item, storage) for item in graph.nodes if isinstance(item, LoopNode)})


def render_node(item: LoopNode, storage: dict[str, torch.dtype]) -> RenderedKernel:
    """The node as a kernel that is named by its text, so that equal ones are compiled once."""
    unnamed = "kernel_without_name"
    space = Space(item.x_dims, item.r_dims)
    kernel = render_cpp(Group(unnamed, space, (Member(item, item.body),), frozenset({item.name})), storage)
    name = f"kernel_{hashlib.sha256(kernel.source.encode()).hexdigest()[:16]}"
    return replace(kernel, name=name, source=kernel.source.replace(unnamed, name))


def execute(compiled: Lowered, launchers: dict[str, Kernel], arguments: Sequence[torch.Tensor]) -> list[Any]:
    """The graph's outputs: loop nodes in C++, library calls as the interpreter of the loop IR makes them."""
    graph = compiled.graph
    buffers = {name: interpret.flat_storage(tensor, graph.buffers[name]) for name, tensor in graph.constants.items()}
    for name, tensor in zip(graph.inputs, arguments, strict=True):
        if name is not None:
            buffers[name] = interpret.flat_storage(tensor, graph.buffers[name])
    for item in graph.nodes:
        if not isinstance(item, LoopNode):
            interpret.run_extern(item, buffers)
            continue
        # What lies behind the buffer's end must stay as it is.
        size = known(item.layout.storage_numel)
        whole = torch.zeros(size + 64, dtype=item.layout.dtype)
        if item.updates is not None:
            whole[:size] = buffers[item.updates]
        buffers[item.name] = whole[:size]
        kernel = compiled.kernels[item.name]
        launchers[kernel.name](*[buffers[name] for name in kernel.parameters])
        assert not whole[size:].any(), f"{kernel.name} writes behind its buffer"
    return [interpret.given(output, buffers, interpret.NO_SYMBOLS) for output in graph.outputs]


#: What GCC does at -O1 that makes compiling dearer by a third, and decides nothing about vectors.
_SPARED = (
    "-fno-tree-dominator-opts -fno-ipa-pure-const -fira-algorithm=priority -fno-ivopts -fno-forward-propagate -fno-dse "
    "-fno-dce -fno-tree-pta -fno-move-loop-invariants -fno-if-conversion -fno-cprop-registers"
).split()


@contextmanager
def compiled_in_half_the_time() -> Iterator[None]:
    """Within the block GCC optimises less and puts less in place, for tests that ask whether a kernel's text is right,
    of many kernels. What it makes of such texts with the flags that kernels have is asked in `test_operators.py` beside
    this file."""
    flags = tuple("-O1" if flag == "-O3" else flag for flag in cpp_compiler._FLAGS)
    of_gcc = (*(flag for flag in cpp_compiler._FLAGS_OF_GCC if "growth" not in flag), *_SPARED)
    with patch.object(cpp_compiler, "_FLAGS", flags), patch.object(cpp_compiler, "_FLAGS_OF_GCC", of_gcc):
        yield


def launch_all(cases: Sequence[Lowered]) -> dict[str, Kernel]:
    """In one translation unit: another one would have headers to read, and each process of the suite has one core."""
    kernels = list({kernel.name: kernel for case in cases for kernel in case.kernels.values()}.values())
    with patch("compiler.runtime.cpp.library.usable_cores", lambda: 1):
        return compile_kernels(kernels)


def close(result: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor, sums: bool = False) -> str:
    """Empty where `result` is about as near to float64's `exact` as `wanted` (eager's) is; else what is wrong."""
    if result.shape != wanted.shape or result.dtype != wanted.dtype:
        return f"is {result.dtype}{list(result.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if not wanted.is_floating_point():
        return "" if torch.equal(result, wanted) else f"differs in {(result != wanted).sum()} elements"
    epsilon = torch.finfo(wanted.dtype).eps
    got, eager, true = result.double(), wanted.double(), exact.double()
    if got.numel() == 0:
        return ""
    same = (got == eager) | (got.isnan() & eager.isnan())
    scale = true.abs().nan_to_num(0.0, 0.0, 0.0)
    bound = 3 * (eager - true).abs().nan_to_num(0.0) + 16 * epsilon * (scale + (scale.max() if sums else 0) + 1e-30)
    wrong = ~same & ~((got - true).abs() <= bound)
    if not wrong.any():
        return ""
    place = int(wrong.flatten().nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements; first {place}: {got.flatten()[place].item()!r}, "
        f"eager {eager.flatten()[place].item()!r}, exact {true.flatten()[place].item()!r}"
    )
