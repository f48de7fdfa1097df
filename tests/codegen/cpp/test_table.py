"""The table of operators, each loop node a C++ kernel of its own, compared with eager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from compiler.codegen.program import RenderedKernel
from compiler.ir.nodes import LoopNode
from compiler.runtime.cpp_library import compile_kernels
from tests.codegen.cpp.harness import Lowered, close, execute, render_nodes
from tests.lowering.checks import eager, in_float64
from tests.lowering.checks import lowered as lower_function
from tests.lowering.operators import Operator
from tests.lowering.tables import OPERATORS

_PER_LIBRARY = 30


def _samples(operator: Operator) -> list[Sequence[torch.Tensor]]:
    """Few of each dtype: the loops of other layouts differ little, and lowering's own tests run all of them."""
    return [
        inputs
        for dtype in operator.dtypes
        for inputs in operator.samples(dtype)[: 2 if dtype == torch.float32 else 1]
    ]


@pytest.mark.parametrize("first", range(0, len(OPERATORS), _PER_LIBRARY))
def test_table_of_operators(first: int) -> None:
    kernels: dict[str, RenderedKernel] = {}
    runs: list[tuple[Operator, Lowered, Sequence[torch.Tensor], list[Any]]] = []
    for operator in OPERATORS[first : first + _PER_LIBRARY]:
        for inputs in _samples(operator):
            expected = eager(operator.function, inputs)
            if expected is None:
                continue
            graph = lower_function(operator.function, *inputs)
            if not any(isinstance(node, LoopNode) for node in graph.nodes):
                continue
            compiled = render_nodes(graph, f"row_{first}_{len(runs)}")
            kernels |= {kernel.name: kernel for kernel in compiled.kernels.values()}
            runs.append((operator, compiled, inputs, expected))
    launchers = compile_kernels(list(kernels.values()))
    problems = []
    for operator, compiled, inputs, expected in runs:
        results = execute(compiled, launchers, inputs)
        exact = in_float64(operator.function, inputs)
        for ours, wanted, judge in zip(results, expected, exact, strict=True):
            if isinstance(wanted, torch.Tensor):
                problem = close(ours, wanted, judge, sums=True)
                shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
                problems += [f"{operator.name}({shapes}): {problem}"] if problem else []
    assert not problems, "\n".join(problems)
