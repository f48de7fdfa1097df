"""No kernel is given a tensor of another device, and each result lies where eager mode puts it."""

from __future__ import annotations

import pytest
import torch

from compiler.ir.body import trace
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import Layout, LoopGraph, LoopNode
from compiler.ir.ops import ops
from compiler.lowering.devices import refuse_foreign_reads
from compiler.lowering.unsupported import UnsupportedGraph
from tests.pipeline.two_devices import CASES, ROWS, Given, run_as_fakes

#: A constant is brought to the GPU when its graph is compiled, for which there must be one.
COMPILED_WITH_A_GPU = {"constant index"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - COMPILED_WITH_A_GPU))
def test_kernels_get_what_lies_on_their_device(name: str) -> None:
    ours, eager, _ = run_as_fakes(*CASES[name])
    for mine, theirs in zip(ours, eager, strict=True):
        assert (mine.device.type, mine.dtype, mine.shape) == (theirs.device.type, theirs.dtype, theirs.shape)


def test_two_gpus_are_refused_with_line_and_remedy() -> None:
    given = (Given((4,), "cuda:0"), Given((4,), "cuda:1"))
    with pytest.raises(UnsupportedGraph, match="two GPUs, cuda:0 and cuda:1"):
        run_as_fakes(lambda x, y: (x + 1, y * 2), given)


def test_a_tensor_without_memory_is_refused() -> None:
    with pytest.raises(UnsupportedGraph, match="device `meta`"):
        run_as_fakes(lambda x: (x + 1, torch.ones(3, device="meta")), (ROWS,))


def test_a_kernel_that_would_read_the_other_device_is_refused() -> None:
    """No lowering makes one; if one did, nothing after it would notice."""
    body = trace(lambda: ops.store("y", Index.of(Dim("x0", 4)), ops.load("x", Index.of(Dim("x0", 4)), torch.float32)))
    node = LoopNode("y", Layout((4,), (1,), torch.float32), (Dim("x0", 4),), (), body, lines=(7,))
    with pytest.raises(UnsupportedGraph, match="`x`, which lies on another device") as refusal:
        refuse_foreign_reads(LoopGraph(nodes=[node], elsewhere=frozenset({"x"})))
    assert refusal.value.line == 7
