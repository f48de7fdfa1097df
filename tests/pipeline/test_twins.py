"""The Triton twin of a kernel is checked on the tensors that the C++ kernel got, each under its own name."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.stages import offline

PROGRAMS = {
    "a product whose halves are parts of one tensor, in another order of parameters": """
def f(x, w, u, s):
    q, k = x @ w, x @ u
    return torch.cat((q * s.cos(), q * s.sin()), -1), k
torch.compile(f)(torch.randn(24, 32), torch.randn(32, 32), torch.randn(32, 32), torch.randn(24, 32))
""",
    "a product of which C++ is given a tensor more": """
def f(q, k, v, sink):
    v = v.view(2, 12, 2, 16).transpose(1, 2)
    s = torch.einsum("bhid,bhjd->bhij", q, k) * 0.25
    s = s.masked_fill(torch.ones(12, 12, dtype=torch.bool).triu(1), -1e30)
    s = torch.cat([sink.view(1, 2, 1, 1).expand(2, 2, 12, 1), s], -1)
    p = torch.nn.functional.dropout(s.softmax(-1)[..., 1:], 0.0, training=False)
    return torch.einsum("bhij,bhjd->bhid", p, v).transpose(1, 2).reshape(2, 12, 32)
q, k = torch.randn(2, 2, 2, 12, 16)
torch.compile(f)(q, k, torch.randn(24, 32) @ torch.eye(32), torch.zeros(2))
""",
    "rows that are parts of one tensor": """
def f(x, y):
    return torch.cat([x.softmax(1), y.flip(1).cumsum(1), (y + x).sum(1, keepdim=True) * x], 1)
torch.compile(f)(torch.randn(24, 32), torch.randn(24, 32))
""",
    "parts that several kernels write": """
def f(x, w, y):
    return torch.cat([(x @ w).t()[3:].clone().sin(), y.softmax(1)])
torch.compile(f)(torch.randn(24, 24), torch.randn(24, 24), torch.randn(24, 24))
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_twin_is_as_right_as_the_kernel(program: str) -> None:
    source = f"import torch\ntorch.manual_seed(0)\n{program}"
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok", report.error
    twins = [one for graph in report.graphs for kernel in graph.kernels for one in kernel.also]
    checked = [one for one in twins if one.language == "triton"]
    assert checked
    for one in checked:
        assert one.max_error is not None and one.max_error < 1e-5, one.check


def test_a_twin_writes_to_memory_that_lies_as_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that a kernel writes may have gaps between its rows."""
    strides: list[tuple[int, ...]] = []

    def note(_: Any, tensors: list[torch.Tensor], *__: Any) -> None:
        strides.extend(tensor.stride() for tensor in tensors)

    monkeypatch.setattr(offline, "interpret", note)
    source = """import torch
@torch.compile
def f(x, part):
    part.copy_(x.sin())
    return part.sum()
f(torch.randn(3, 4), torch.zeros(6, 8)[3:, 4:])
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok" and strides == [(4, 1), (), (8, 1)]
