"""Scans whose programs look back, on a GPU, where programs do run at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.backend import fusionscope
from compiler.runtime.checking.verify import relative_error
from tests.fusion.test_look_back import CASES, as_list, in_double

pytestmark = pytest.mark.gpu

Tensor = torch.Tensor


def large(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator("cuda").manual_seed(0), device="cuda")


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=fusionscope)


@pytest.mark.parametrize("name", CASES)
def test_results_are_as_good_as_eager_every_time(name: str) -> None:
    function, inputs = CASES[name]
    on_gpu = tuple(x.cuda() for x in inputs)
    exact, eager = as_list(function(*in_double(on_gpu))), as_list(function(*on_gpu))
    ours = compiled(function)
    first = as_list(ours(*on_gpu))
    assert relative_error(first, exact) <= 3 * relative_error(eager, exact) + 64 * torch.finfo(torch.float32).eps
    for _ in range(20):
        assert all(torch.equal(one, two) for one, two in zip(first, as_list(ours(*on_gpu)), strict=True))


@pytest.mark.parametrize("rows, length", [(1, (1 << 25) + 3), (3, 9_000_001), (100, 300_000), (1, 1 << 28)])
def test_long_rows_come_out_the_same_bit_for_bit(rows: int, length: int) -> None:
    """More programs than the device holds at one time."""
    x = large(rows, length)
    ours = compiled(lambda x: x.cumsum(-1))
    first = ours(x)
    exact = x.double().cumsum(-1)
    assert relative_error([first], [exact]) <= 1e-5
    del exact
    assert all(torch.equal(first, ours(x)) for _ in range(10))


def test_whole_numbers_are_exact() -> None:
    x = torch.randint(-(1 << 40), 1 << 40, (2, 10_000_019), device="cuda")
    ours = compiled(lambda x: x.cumsum(-1))
    for _ in range(5):
        assert torch.equal(ours(x), x.cumsum(-1))


def test_launches_on_several_streams_do_not_meet() -> None:
    ours = compiled(lambda x: x.cumsum(-1))
    inputs = [torch.randint(-9, 9, (2_000_003,), device="cuda") for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in inputs]
    wanted = [x.cumsum(-1) for x in inputs]
    ours(inputs[0])
    torch.cuda.synchronize()
    for _ in range(20):
        results = []
        for x, stream in zip(inputs, streams, strict=True):
            with torch.cuda.stream(stream):
                results.append(ours(x))
        torch.cuda.synchronize()
        assert all(torch.equal(result, one) for result, one in zip(results, wanted, strict=True))


def test_a_graph_is_replayed_between_ordinary_calls() -> None:
    x = torch.randint(-9, 9, (3_000_001,), device="cuda")
    ours = compiled(lambda x: x.cumsum(-1))
    ours(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        ours(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = ours(x)
    for step in range(5):
        x.add_(step)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(result, x.cumsum(-1)) and torch.equal(ours(x), x.cumsum(-1))
