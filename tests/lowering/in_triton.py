"""Running a loop graph by Triton's interpreter, each of its loop nodes as a kernel of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.ir.interpret import NO_SYMBOLS, flat_storage, given, run_extern
from compiler.ir.nodes import LoopGraph, LoopNode
from compiler.ir.size import known
from compiler.runtime.interpreter.interpreter import interpret, interpreting
from compiler.runtime.triton.source import grid_of
from compiler.schedule.group import Group, Member, Space

#: A kernel with more program instances takes longer than it teaches: give the row a smaller sample.
_MOST_PROGRAMS = 200


def run_in_triton(graph: LoopGraph, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of the graph, its loop nodes run by Triton's interpreter."""
    storages: dict[str, Tensor] = {
        name: flat_storage(value, graph.buffers[name])
        for name, value in zip(graph.inputs, inputs, strict=True)
        if name is not None
    }
    storages |= {name: flat_storage(tensor, graph.buffers[name]) for name, tensor in graph.constants.items()}
    dtypes = {name: layout.dtype for name, layout in graph.buffers.items()}
    with interpreting():
        for node in graph.nodes:
            if isinstance(node, LoopNode):
                _run_as_kernel(node, storages, dtypes)
            else:
                run_extern(node, storages)
    return [given(output, storages, NO_SYMBOLS) for output in graph.outputs]


def _run_as_kernel(node: LoopNode, storages: dict[str, Tensor], dtypes: dict[str, torch.dtype]) -> None:
    group = Group(
        f"fused_{node.name}", Space(node.x_dims, node.r_dims), (Member(node, node.body),), frozenset({node.name})
    )
    kernel = render_triton(group, dtypes, H200)
    assert grid_of(kernel)() <= _MOST_PROGRAMS, (
        f"{grid_of(kernel)()} program instances are too many for the interpreter"
    )
    if node.updates is not None:
        storages[node.name] = storages[node.updates].clone()
    else:
        storages[node.name] = torch.zeros(known(node.layout.storage_numel), dtype=node.layout.dtype)
    interpret(kernel, [storages[name] for name in kernel.parameters])
