"""A kernel of many functions is made of vectors as a small one is."""

from __future__ import annotations

import platform

import pytest

from compiler.machine_code.cpp import cpp_levels
from compiler.options import KernelToCompile, Options
from compiler.pipeline import explore
from compiler.runtime.cpp.compiler import is_gcc

FUNCTIONS = ("torch.sin(x)", "torch.exp(-x * x)", "torch.tanh(x)", "torch.erf(x)", "torch.sigmoid(x)")


@pytest.mark.parametrize("count", [2, 60])
def test_its_loop_is_of_vectors(count: int) -> None:
    if not is_gcc() or platform.machine() != "x86_64":
        pytest.skip("what GCC puts in place on x86-64 is looked at")
    body = "".join(f"    x = {FUNCTIONS[place % len(FUNCTIONS)]} * 0.9\n" for place in range(count))
    source = f"import torch\ndef f(x):\n{body}    return x\nf(torch.randn(512, 512))\n"
    report = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule", "codegen")))
    (kernel,) = report.graphs[0].kernels
    code = cpp_levels(kernel.source, KernelToCompile(name=kernel.name, language="cpp", target="host"))
    lines = code.levels[0].text.splitlines()
    loop = max(code.loops, key=lambda one: one.packed)
    assert loop.packed > 5 * count and loop.packed > 10 * loop.scalar
    called = [line.split()[1] for line in lines[loop.first - 1 : loop.last] if line.split()[:1] == ["call"]]
    assert [name for name in called if not name.startswith("_ZGV")] == [], "those that take no vector"
