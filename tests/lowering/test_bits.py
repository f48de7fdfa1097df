"""Numbers that are read by their bits in another dtype: loops that fuse, where both dtypes are as wide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from compiler.ir import interpret
from compiler.ir.nodes import LoopNode
from tests.lowering.checks import lowered

SPECIAL = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 1.0 + 2**-8, 1.0 + 3 * 2**-8, -3.4e38, 1e-42])


def of_float(x: Tensor) -> Tensor:
    return ((x.view(torch.int32) + 0x8000) & -65536).view(torch.float32) * 2


def of_bfloat16(x: Tensor) -> Tensor:
    return (x.to(torch.bfloat16).view(torch.int16) ^ 3).view(torch.bfloat16)


def of_bytes(x: Tensor) -> Tensor:
    return x.to(torch.int8).view(torch.uint8).to(torch.int32) + 1


@pytest.mark.parametrize("function", [of_float, of_bfloat16, of_bytes], ids=lambda function: str(function.__name__))
def test_bits_in_another_dtype_are_loops(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.cat([SPECIAL if function is not of_bytes else SPECIAL[:2], torch.randn(40) * 50])
    graph = lowered(function, x)
    assert all(isinstance(node, LoopNode) for node in graph.nodes)
    (ours,) = interpret.run(graph, [x])
    torch.testing.assert_close(ours, function(x), rtol=0, atol=0, equal_nan=True)


def test_a_dtype_of_another_width_is_a_call() -> None:
    graph = lowered(lambda x: x.view(torch.int16) + 1, torch.randn(4, 8))
    assert not all(isinstance(node, LoopNode) for node in graph.nodes)
