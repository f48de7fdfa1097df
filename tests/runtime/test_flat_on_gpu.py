"""A flat call on a GPU: streams, threads, devices, addresses and modes other than those of the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def kernels(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sin(x) * y + 1, (x * y).sum()


def library(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.relu(x @ y.t()) + 1, x.t()


def check(compiled: Callable[..., Any], function: Callable[..., Any], *inputs: Tensor) -> None:
    torch.testing.assert_close(compiled(*inputs), function(*inputs), rtol=1e-4, atol=1e-4)


def pair(offset: int = 0, rows: int = 64, device: str = "cuda") -> list[Tensor]:
    memory = [torch.randn(rows * 64 + offset, device=device) for _ in range(2)]
    return [tensor[offset:].view(rows, 64) for tensor in memory]


@pytest.mark.parametrize("function", [kernels, library])
def test_calls_that_differ_from_the_first(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend=fusionscope)
    for _ in range(3):
        check(compiled, function, *pair())
    check(compiled, function, *pair(offset=1))
    check(compiled, function, *pair(offset=1))
    with torch.no_grad():
        check(compiled, function, *pair())
    with torch.inference_mode():
        check(compiled, function, *pair())
    check(compiled, function, *pair(rows=32))
    check(compiled, function, *pair(device="cpu"))
    x, y = pair()
    gradients = [torch.autograd.grad(each(x.requires_grad_(), y)[0].sum(), x) for each in (compiled, function)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    check(compiled, function, *pair())


@pytest.mark.parametrize("function", [kernels, library])
def test_calls_on_other_streams_and_threads(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend=fusionscope)
    check(compiled, function, *pair())
    streams = [torch.cuda.Stream() for _ in range(3)]
    failures: list[BaseException] = []

    def many(stream: torch.cuda.Stream) -> None:
        try:
            with torch.cuda.stream(stream):
                for _ in range(20):
                    check(compiled, function, *pair())
        except BaseException as error:
            failures.append(error)

    for stream in streams:
        many(stream)
    threads = [Thread(target=many, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
