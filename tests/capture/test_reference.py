"""A graph in float64: operators that know no float64 compute in their own dtype, everything around them does not."""

from __future__ import annotations

import pytest
import torch

from compiler.capture.reference import reference_run
from tests.capture.programs import captured_source

PROGRAM = """import torch

@torch.compile
def f(x):
    return {body} * 3

f(torch.randn(4, 8))
"""


@pytest.mark.parametrize(
    "body",
    [
        "torch.fake_quantize_per_channel_affine(x.sin(), torch.linspace(0.1, 1, 4), torch.zeros(4), 0, -128, 127)",
        "torch.quantize_per_tensor(x.sin(), 0.1, 10, torch.quint8).dequantize()",
    ],
)
def test_operators_that_quantise_take_their_own_dtype(body: str) -> None:
    (graph,) = captured_source(PROGRAM.format(body=body)).graphs
    assert graph.inputs is not None
    (exact,), (plain,) = reference_run(graph, graph.inputs), reference_run(graph, graph.inputs, None)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), plain)
