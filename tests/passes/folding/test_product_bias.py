"""A float32 product of few tiles has its bias added by a loop; nothing that a caller sees changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from compiler.backend import fusionscope
from compiler.compile import Lowered, Target, build, lower
from compiler.devices import H200, cpu_device
from compiler.ir.nodes import ExternNode
from compiler.lowering.decompositions import decompositions
from compiler.lowering.registry import operator_name
from compiler.options import Options
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import to_double
from tests.compile_program import compile_program

INPUTS = ((24, 16), (40, 16), (40,))
LONG = ((24, 768), (40, 768), (40,))


def returned(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b)


def read(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b).sin().sum(1)


def calls(compilation: Lowered) -> list[str]:
    return [operator_name(node.target) for node in compilation.loops.nodes if isinstance(node, ExternNode)]


def in_parts(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(F.linear(x.view(2, 12, -1), w, b))


@pytest.mark.parametrize(("function", "shapes"), [(returned, LONG), (in_parts, INPUTS)])
def test_it_is_added_once(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    inputs = [torch.randn(shape) for shape in shapes]
    compilation = compile_program(function, *inputs)
    assert calls(compilation) == ["aten.mm"]
    (found,) = build(compilation).executable.call(list(inputs))
    expected = function(*inputs)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()


@pytest.mark.gpu
@pytest.mark.parametrize("function", [returned, read, in_parts])
def test_on_a_gpu_too(function: Callable[..., Any]) -> None:
    inputs = [torch.randn(shape, device="cuda") for shape in LONG]
    torch._dynamo.reset()
    with torch.no_grad():
        found, eager = torch.compile(function, backend=fusionscope, dynamic=False)(*inputs), function(*inputs)
        assert is_correct(found, function(*to_double(tuple(inputs))), eager)
    assert found.stride() == eager.stride()


@pytest.mark.parametrize(
    ("function", "shapes", "dtype", "options"),
    [
        (returned, LONG, torch.bfloat16, {}),
        (returned, ((1 << 14, 768), (768, 768), (768,)), torch.float32, {}),
        (lambda x, w, b: torch.relu(F.linear(x, w, b)), ((1 << 14, 768), (768, 768), (768,)), torch.float32, {}),
        (returned, INPUTS, torch.float32, {}),
        (returned, LONG, torch.float32, {"disable": ["bias"]}),
        (returned, LONG, torch.float32, {"target": "cpu"}),
        (lambda x, w, b: torch.addmm(b, x, w.t(), beta=2), LONG, torch.float32, {}),
        (lambda x, w, b: torch.addmm(b[None].expand(24, 40), x, w.t()), LONG, torch.float32, {}),
    ],
)
def test_where_the_library_adds_it(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype, options: dict[str, Any]
) -> None:
    with FakeTensorMode():
        graph = make_fx(function, decompositions())(*(torch.empty(shape, dtype=dtype) for shape in shapes))
    device = cpu_device(2) if options.get("target") == "cpu" else H200
    target = Target(torch.device("cpu"), device, Options(knobs={"disable": options.get("disable", [])}))
    compilation = lower(graph, target)
    assert calls(compilation) == ["aten.addmm"]
