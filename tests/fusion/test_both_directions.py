"""Rows that are reduced of a matrix and a transposed one at once, in Triton's interpreter, against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.runtime.checking.verify import relative_error
from tests.compile_program import call_interpreted, compile_program

#: With rows of a matrix, and columns of another one, that are longer than a program holds.
PROGRAMS: dict[str, tuple[Callable[[Tensor, Tensor], Any], int, int]] = {
    "sum, and each element": (lambda a, b: ((a * b.t()).sum(1), a * b.t()), 130, 700),
    "place of the largest": (lambda a, b: (a - b.t()).argmax(1), 40, 9000),
    "variance": (lambda a, b: (a - b.t()).var(1), 40, 9000),
    "logarithm of a sum of exponentials": (lambda a, b: torch.logsumexp(a - b.t(), 1), 40, 9000),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_matrix_and_a_transposed_one_are_reduced_in_tiles(name: str) -> None:
    function, rows, columns = PROGRAMS[name]
    given = {"a": torch.randn(rows, columns), "b": torch.randn(columns, rows)}
    compilation = compile_program(function, given["a"], given["b"])
    (kernel,) = compilation.triton.values()
    for block in ("XBLOCK", "RBLOCK"):
        size = kernel.config[block]
        assert isinstance(size, int) and size >= 32
    results = call_interpreted(compilation, [given[str(name)] for name in compilation.schedule.graph.inputs])
    expected = function(given["a"].double(), given["b"].double())
    for result, reference in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert relative_error(result, reference) < 1e-5
