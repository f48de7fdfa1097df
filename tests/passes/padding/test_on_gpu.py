"""On a GPU: products of odd sizes, padded by choice, give what eager gives, where eager has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import to_double
from tests.passes.padding.test_padding import added, both_sides, consumed, in_parts, whole

pytestmark = pytest.mark.gpu

ROWS, WIDTH, WORDS = 1024, 768, 10007


def tensors(dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator("cuda").manual_seed(5)
    x, table, bias = (
        torch.randn(shape, generator=generator, device="cuda") for shape in ((ROWS, WIDTH), (WORDS, WIDTH), (WORDS,))
    )
    return [x.to(dtype), (table / WIDTH**0.5).to(dtype), bias.to(dtype)]


def loss(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(x, table, bias).float(), torch.arange(ROWS, device=x.device))


def gradients(x: Tensor, table: Tensor, bias: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss(x, table, bias), (x, table, bias)))


def compiled(function: Callable[..., Any], *given: Tensor) -> tuple[Any, list[Built]]:
    graphs: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(graphs.append):
        return torch.compile(function, backend=fusionscope)(*given), graphs


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("function", [added, consumed, both_sides, in_parts])
def test_padded_products_are_as_right_as_eagers(function: Callable[..., Any], dtype: torch.dtype) -> None:
    given = tensors(dtype)
    with torch.no_grad():
        result, graphs = compiled(function, *given)
        expected, exact = function(*given), function(*to_double(tuple(given)))
    assert graphs[0].paddings[0].verdict == "padded" or graphs[0].paddings[0].verdict == "apart"
    assert is_correct(result, exact, expected)
    for own, eager in zip(*(x if isinstance(x, tuple) else (x,) for x in (result, expected)), strict=True):
        assert own.stride() == eager.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("function", [added, whole])
def test_rows_that_lie_apart_are_as_right_as_eagers(function: Callable[..., Any], dtype: torch.dtype) -> None:
    x, table, bias = tensors(dtype)
    given = [x.repeat(8, 1), table.repeat(2, 1)[:20013], bias.repeat(2)[:20013]]
    with torch.no_grad():
        result, graphs = compiled(function, *given)
        expected, exact = function(*given), function(*to_double(tuple(given)))
    assert graphs[0].paddings[0].verdict == "apart"
    assert is_correct(result, exact, expected) and result.stride() == expected.stride()


def test_gradients_through_padded_products_are_as_right_as_eagers() -> None:
    given = [tensor.requires_grad_() for tensor in tensors(torch.bfloat16)]
    result, graphs = compiled(loss, *given)
    with observed_compilations(graphs.append):
        result.backward()
    doubled = [tensor.detach().double().requires_grad_() for tensor in given]
    exact, expected = gradients(*doubled), gradients(*given)
    assert sum(choice.verdict == "padded" for graph in graphs for choice in graph.paddings) == 3
    assert is_correct([tensor.grad for tensor in given], exact, expected)
