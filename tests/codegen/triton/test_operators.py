"""Every operator of the table, each of its loop nodes as a kernel of its own, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.codegen.triton.render import render_triton
from compiler.devices import H200
from compiler.ir.nodes import Layout, LoopGraph, LoopNode, TensorArgument
from compiler.runtime.triton_interpreter import interpret, programs
from compiler.schedule.group import Group, Member, Space
from tests.lowering import operators_shapes
from tests.lowering.checks import check
from tests.lowering.operators import OPERATORS, Operator

EVERY = [*OPERATORS, *operators_shapes.OPERATORS]
#: A kernel with more program instances takes longer than it teaches.
_MOST_PROGRAMS = 200


def run(graph: LoopGraph, inputs: Sequence[Tensor]) -> list[Any]:
    buffers = {name: _flat(tensor) for name, tensor in graph.constants.items()}
    buffers |= {name: _flat(tensor) for name, tensor in zip(graph.inputs, inputs, strict=True) if name}
    storage = {name: layout.dtype for name, layout in graph.buffers.items()}
    for node in graph.nodes:
        if isinstance(node, LoopNode):
            buffers[node.name] = torch.zeros(node.layout.storage_numel, dtype=node.layout.dtype)
            group = Group(f"fused_{node.name}", Space(node.x_dims, node.r_dims), (Member(node, node.body),),
                          frozenset({node.name}))
            kernel = render_triton(group, storage, H200)
            if programs(kernel) > _MOST_PROGRAMS:
                pytest.skip("too large for the interpreter")
            interpret(kernel, [buffers[name] for name in kernel.parameters])
            continue
        results = node.target(*_views(list(node.arguments), buffers), **_views(node.keywords, buffers))
        sequence = results if isinstance(results, list | tuple) else [results]
        for output, result in zip(node.outputs, sequence, strict=False):
            if output is not None:
                buffers[output[0]] = torch.zeros(output[1].storage_numel, dtype=output[1].dtype)
                _view(buffers[output[0]], output[1]).copy_(result)
    return [output.value if output.buffer is None or output.layout is None
            else _view(buffers[output.buffer], output.layout) for output in graph.outputs]


def _flat(tensor: Tensor) -> Tensor:
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.dtype.itemsize,), (1,), 0)


def _view(buffer: Tensor, layout: Layout) -> Tensor:
    return buffer.as_strided(layout.shape, layout.stride, layout.offset)


def _views(value: Any, buffers: dict[str, Tensor]) -> Any:
    if isinstance(value, TensorArgument):
        return _view(buffers[value.buffer], value.layout)
    if isinstance(value, list | tuple):
        return type(value)(_views(item, buffers) for item in value)
    if isinstance(value, dict):
        return {key: _views(item, buffers) for key, item in value.items()}
    return value


@pytest.mark.parametrize("operator", EVERY, ids=lambda operator: operator.name)
def test_operator_in_triton_equals_eager(operator: Operator) -> None:
    for dtype in operator.dtypes:
        for inputs in operator.samples(dtype):
            check(operator.name, operator.function, inputs, run)
