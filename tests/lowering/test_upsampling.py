"""Gradients of interpolation are one loop each, which sums in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.torch_internals import lazy_backward_off
from compiler.ir import interpret
from compiler.ir.nodes import LoopGraph, LoopNode
from compiler.lowering.lower import lower
from compiler.lowering.upsampling import LINEAR, NEAREST, NEAREST_EXACT, Axis, Filter, range_of

MODES = [
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
    ("trilinear", 3),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "rank"), MODES)
def test_the_gradient_of_an_interpolation_is_one_reduction(mode: str, rank: int) -> None:
    graphs: list[LoopGraph] = []

    def backend(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
        def compile_graph(part: torch.fx.GraphModule, _phase: Any) -> Any:
            graphs.append(lower(part))

            def run(inputs: list[Any]) -> list[Any]:
                return interpret.run(loops, inputs)

            loops, run._boxed_call = graphs[-1], True  # type: ignore[attr-defined]
            return run

        with lazy_backward_off():
            return compile_through_aot(graph, examples, compile_graph)

    def larger(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode=mode)

    x = torch.randn(1, 2, *[4, 3, 2][:rank], generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch._dynamo.reset()
    torch.compile(larger, backend=backend)(x).square().sum().backward()
    compiled, x.grad = x.grad, None
    larger(x).square().sum().backward()
    torch.testing.assert_close(compiled, x.grad)
    (node,) = [node for node in graphs[-1].nodes if isinstance(node, LoopNode)]
    assert node.r_dims and node.updates is None
    kept = torch.ops.aten.upsample_bilinear2d.default.py_kernels
    assert torch._C.DispatchKey.Autograd in kept, "PyTorch's own way must be in place again"


@pytest.mark.parametrize(
    ("kind", "image", "result", "count"),
    [
        (NEAREST, 8, 16, 2), (NEAREST, 16, 64, 4), (NEAREST, 9, 9, 1), (NEAREST, 16, 8, 1), (NEAREST_EXACT, 8, 16, 2),
        (LINEAR, 8, 16, 4), (LINEAR, 16, 64, 8), (LINEAR, 64, 16, 1),
    ],
)  # fmt: skip
def test_an_element_asks_no_more_results_than_it_is_part_of(kind: Filter, image: int, result: int, count: int) -> None:
    assert range_of(Axis(image, result), kind).count == count


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_whole_numbers_are_what_pytorch_makes_of_them(mode: str) -> None:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (1, 3, 37, 33), generator=generator).to(torch.uint8)

    def smaller(x: Tensor) -> Tensor:
        return F.interpolate(x, size=(50, 20), mode=mode)

    torch._dynamo.reset()
    assert torch.equal(torch.compile(smaller, backend="fusionscope")(image), smaller(image))
