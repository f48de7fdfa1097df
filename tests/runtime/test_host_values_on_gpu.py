"""Breaks that read a value, on a GPU: both ways of a branch, streams, threads, recordings and errors."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor

import compiler.compile as compile_module
from compiler.backend import fusionscope
from compiler.runtime.host.host_values import HostValue, host_value
from tests.capture.test_read_outputs import branch

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.dtype]]:
    """The dtypes of the values that get to the host without torch."""
    torch._dynamo.reset()
    dtypes: list[torch.dtype] = []

    def noted(device: torch.device, dtype: torch.dtype, is_truth: bool) -> HostValue | None:
        dtypes.append(dtype)
        return host_value(device, dtype, is_truth)

    monkeypatch.setattr(compile_module, "host_value", noted)
    yield dtypes
    torch._dynamo.reset()


def loop(a: Tensor, b: Tensor) -> Tensor:
    while (b * b).mean() > 1e-3:
        b = b / 2
    return a + b


def item(a: Tensor, b: Tensor) -> Tensor:
    return a * (b * 2).mean().item()


def count(a: Tensor, b: Tensor) -> Tensor:
    return torch.relu(a) + int((b > 0).sum())


def pair(size: int = 1 << 20) -> tuple[Tensor, Tensor]:
    return torch.randn(size, device="cuda"), torch.rand(size, device="cuda")


def check(compiled: Callable[..., Any], function: Callable[..., Any], a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(compiled(a, b), function(a, b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [branch, loop, item, count])
def test_calls_that_differ(function: Callable[..., Any], made: list[torch.dtype]) -> None:
    compiled = torch.compile(function, backend=fusionscope)
    a, b = pair()
    for _ in range(50):
        check(compiled, function, a, b)
        a, b = b, -a
        check(compiled, function, a, b)
    assert made
    with torch.inference_mode():
        check(compiled, function, a, b)
    check(compiled, function, *pair(1000))
    check(compiled, function, a.cpu(), b.cpu())
    x, y = a.clone().requires_grad_(), a.clone().requires_grad_()
    compiled(x, b).sum().backward()
    function(y, b).sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-4)


def test_other_streams_and_threads() -> None:
    compiled = torch.compile(branch, backend=fusionscope)
    inputs = [pair(), tuple(-t for t in pair()), pair()]
    expected = [branch(*each) for each in inputs]
    compiled(*inputs[0]), compiled(*inputs[1])
    torch.cuda.synchronize()
    wrong: list[int] = []

    def work(n: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(100):
                which = (n + turn) % 3
                if not torch.allclose(compiled(*inputs[which]), expected[which], rtol=1e-4, atol=1e-4):
                    wrong.append(which)

    threads = [Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_long_queue_before_it() -> None:
    compiled = torch.compile(branch, backend=fusionscope)
    a, b = pair()
    compiled(a, b)
    for sign in (1, -1, 1, -1):
        torch.cuda._sleep(20_000_000)
        check(compiled, branch, a, sign * b)


RECORDING = """
import torch
from compiler.backend import fusionscope
from tests.runtime.test_host_values_on_gpu import branch, check, pair

compiled = torch.compile(branch, backend=fusionscope)
a, b = pair()
compiled(a, b)
torch.cuda.synchronize()
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        compiled(a, b)
except RuntimeError:
    torch.cuda.synchronize()
    check(compiled, branch, a, b)
    print("refused")
"""


def test_who_records_launches_is_told_that_a_value_is_read() -> None:
    """In a process of its own: torch's generator stays in a recording that has failed."""
    run = subprocess.run([sys.executable, "-c", RECORDING], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert run.stdout == "refused\n", run.stderr


def test_who_wants_to_be_told_of_waits_is_told() -> None:
    compiled = torch.compile(branch, backend=fusionscope)
    a, b = pair()
    compiled(a, b)
    try:
        torch.cuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError, match="synchronizing"):
            compiled(a, b)
        torch.cuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled(a, b)
        assert caught
    finally:
        torch.cuda.set_sync_debug_mode("default")
    check(compiled, branch, a, b)


def test_an_error_between_kernel_and_value_leaves_later_calls_right(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(branch, backend=fusionscope)
    a, b = pair(1 << 28)
    check(compiled, branch, a, b)
    torch.cuda.empty_cache()
    held = torch.cuda.memory_reserved()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (held + (1 << 28)) / total))
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError):
            compiled(a, b)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    check(compiled, branch, a, b)
    check(compiled, branch, a, -b)
