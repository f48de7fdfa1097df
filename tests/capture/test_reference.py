"""A graph in float64, but for operators that know no float64 or go by their dtype: they compute in their own."""

from __future__ import annotations

import pytest
import torch

from compiler.capture.reference import reference_run
from tests.capture.programs import captured_source

PROGRAM = """import torch

@torch.compile
def f(x):
    return {body} / 3

f(torch.randn(4, 8))
"""


@pytest.mark.parametrize(
    "body",
    [
        "torch.fake_quantize_per_channel_affine(x.sin(), torch.linspace(0.1, 1, 4), torch.zeros(4), 0, -128, 127)",
        "torch.nan_to_num(x.sin() / 0)",
        "torch.quantize_per_tensor(x.sin(), 0.1, 10, torch.quint8).dequantize()",
    ],
)
def test_operators_that_go_by_their_dtype_keep_it(body: str) -> None:
    (graph,) = captured_source(PROGRAM.format(body=body)).graphs
    assert graph.inputs is not None
    (exact,), (plain,) = reference_run(graph, graph.inputs), reference_run(graph, graph.inputs, None)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), plain)
