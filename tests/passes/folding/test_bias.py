"""A convolution's bias is added once, by a loop of ours on a GPU, and nothing that a caller sees changes.

Gradients of what has a bias are in `tests/passes/layout/test_training.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.compile import Generated
from compiler.devices import H200
from compiler.ir.nodes import ExternNode
from compiler.options import Options
from compiler.passes.folding.bias import with_bias_apart
from compiler.runtime.checking.verify import leaves
from tests.compile_program import capture_graph, compile_program, kernel_count
from tests.passes.folding.as_eager import check_as_eager
from tests.passes.layout.test_channels_last import CompiledForGpu, convolutions

aten = torch.ops.aten
Program = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]

IMAGE, FILTER, VECTOR = (2, 16, 12, 10), (16, 16, 3, 3), (16,)
PROGRAMS: dict[str, Program] = {
    "one dimension": (lambda x, a, v: F.conv1d(x, a, v).relu(), ((2, 16, 20), (16, 16, 3), VECTOR)),
    "of one point": (lambda x, a, v: F.conv1d(x, a, v).relu(), ((2, 16, 20), (16, 16, 1), VECTOR)),
    "three dimensions": (lambda x, a, v: F.conv3d(x, a, v).sin(), ((1, 8, 5, 6, 7), (16, 8, 3, 3, 3), VECTOR)),
    "one image": (lambda x, a, v: F.conv2d(x, a, v).sin(), (IMAGE[1:], FILTER, VECTOR)),
    "transposed": (lambda x, a, v: F.conv_transpose2d(x, a, v, 2, 1, 1).relu(), (IMAGE, FILTER, VECTOR)),
    "depthwise": (lambda x, a, v: F.gelu(F.conv2d(x, a, v, groups=16)), (IMAGE, (16, 1, 3, 3), VECTOR)),
    "returned": (lambda x, a, v: F.conv2d(x, a, v), (IMAGE, FILTER, VECTOR)),
    "read twice": (lambda x, a, v: (y := F.conv2d(x, a, v), y.mean((2, 3)), F.conv2d(y, a)), (IMAGE, FILTER, VECTOR)),
    "one after another": (lambda x, a, v: F.conv2d(F.conv2d(x, a, v), a, v), (IMAGE, FILTER, VECTOR)),
    "one bias for two": (lambda x, a, v: F.conv2d(x, a, v) * F.conv2d(x, a + 1, v) + v.sum(), (IMAGE, FILTER, VECTOR)),
    "every other number": (lambda x, a, v: F.conv2d(x + 1, a + 1, v[::2]).relu(), (IMAGE, FILTER, (32,))),
    "changed in place": (lambda x, a, v: F.conv2d(x, a, v).mul_(v.sin_()[:, None, None]), (IMAGE, FILTER, VECTOR)),
}  # fmt: skip


def inputs_of(name: str, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) / len(shape) for shape in PROGRAMS[name][1]]


def biases(compilation: Generated) -> list[Any]:
    return [call.arguments[2] for call in convolutions(compilation)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kind_of_convolution_has_it_added_once(name: str) -> None:
    """The graph that is lowered, run by ATen. What it changes in place comes first of its results."""
    function, inputs = PROGRAMS[name][0], inputs_of(name, torch.float32)
    graph, _ = with_bias_apart(capture_graph(function, *inputs), H200, Options())
    graph.recompile()
    nodes = graph.graph.find_nodes(op="call_function", target=aten.convolution.default)
    assert nodes and all(node.args[2] is None for node in nodes)
    with torch.no_grad():
        found = [value for _, value in leaves(graph(*inputs_of(name, torch.float32)))]
        eager = [value for _, value in leaves(function(*inputs_of(name, torch.float32)))]
    torch.testing.assert_close(found[len(found) - len(eager) :], eager)


@pytest.mark.parametrize("name", ("transposed", "read twice"))
def test_results_and_strides_are_those_of_eager(name: str) -> None:
    backend = CompiledForGpu()
    check_as_eager(PROGRAMS[name][0], backend, lambda: inputs_of(name, torch.bfloat16))
    assert not any(biases(backend.compilations[0]))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=("float32", "bfloat16"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_gpu_too(name: str, dtype: torch.dtype) -> None:
    check_as_eager(PROGRAMS[name][0], fusionscope, lambda: [value.cuda() for value in inputs_of(name, dtype)])


def test_it_is_added_where_the_result_is_read() -> None:
    function, _ = PROGRAMS["depthwise"]
    inputs = inputs_of("depthwise", torch.bfloat16)
    assert kernel_count(compile_program(function, *inputs, disable=["depthwise"])) == (1, 1)
    call = compile_program(function, *inputs, disable=["depthwise", "bias"])
    assert kernel_count(call) == (1, 1) and all(biases(call))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_with_open_sizes_too(name: str, dtype: torch.dtype) -> None:
    """Those of the filters are open as well."""
    found = biases(compile_program(PROGRAMS[name][0], *inputs_of(name, dtype), dynamic=True))
    assert found and set(found) == {None}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_with_open_sizes_of_the_filter_too(dtype: torch.dtype) -> None:
    """A filter that is an input has open sizes, those of its window among them."""

    def function(x: Tensor, a: Tensor, v: Tensor) -> Tensor:
        return F.conv2d(x, a, v).relu()

    inputs = torch.randn(2, 8, 12, 10), torch.randn(16, 8, 3, 3), torch.randn(16)
    assert biases(compile_program(function, *(value.to(dtype) for value in inputs), dynamic=True)) == [None]


def test_on_a_cpu_the_library_adds_it() -> None:
    function, _ = PROGRAMS["depthwise"]
    assert all(biases(compile_program(function, *inputs_of("depthwise", torch.bfloat16), target="cpu")))


def test_products_of_pixels_keep_it() -> None:
    x, a, v = inputs_of("returned", torch.bfloat16)
    x = x.to(memory_format=torch.channels_last)
    compilation = compile_program(lambda x, a, v: F.conv2d(x, a[..., :1, :1], v).relu(), x, a, v)
    (call,) = [node for node in compilation.loops.nodes if isinstance(node, ExternNode)]
    assert call.target is aten.addmm.default
