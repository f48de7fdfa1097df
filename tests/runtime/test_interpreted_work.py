"""What is too much for Triton's interpreter: launches are judged by what they have it do, not by their programs."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from compiler import pipeline
from compiler.budget import Budget
from compiler.compile import Built
from compiler.options import Options, Timing
from compiler.report import Graph
from compiler.runtime.interpreter.interpreter import interpret
from compiler.runtime.interpreter.work import TooMuchWork
from compiler.runtime.triton.source import grid_of
from compiler.stages import offline, running
from tests.compile_program import compile_program


def test_the_length_of_a_sum_counts() -> None:
    kernels = []
    for length in (256, 2048):
        x, y = (torch.randn(*shape, dtype=torch.bfloat16) for shape in ((256, length), (length, 256)))
        compilation = compile_program(lambda x, y: (x @ y).relu(), x, y)
        (kernel,) = compilation.triton.values()
        assert kernel.config["plan"] == "product"
        kernels.append((kernel, [x, y, torch.empty(256, 256, dtype=torch.bfloat16)]))
    (short, of_short), (long, of_long) = kernels
    assert grid_of(short)() == grid_of(long)()
    most = 200_000_000
    interpret(short, of_short, (), most)
    with pytest.raises(TooMuchWork, match=rf"^{grid_of(long)()} program instances as long as these are too much"):
        interpret(long, of_long, (), most)


def test_many_programs_are_refused_after_the_first() -> None:
    x = torch.randn(256 * 1024)
    (kernel,) = compile_program(lambda x: x * 2 + 1, x).triton.values()
    out = torch.zeros_like(x)
    with pytest.raises(TooMuchWork):
        interpret(kernel, [x, out], (), 1_000_000)
    written = int((out != 0).sum())
    assert written * grid_of(kernel)() == out.numel()


def test_programs_that_wait_for_each_other_all_end() -> None:
    x = torch.randn(1, 60001)
    (kernel,) = compile_program(lambda x: torch.softmax(x, -1), x).triton.values()
    assert kernel.config["plan"] == "team"
    before = threading.active_count()
    with pytest.raises(TooMuchWork):
        interpret(kernel, [x, torch.empty_like(x)], (), 200_000)
    for thread in threading.enumerate()[before:]:
        thread.join(300)
    assert threading.active_count() == before


SOURCE = """
import torch
block = torch.compile(lambda x, y: (x @ y).relu())
block(torch.randn(32, 512), torch.randn(512, 32))
"""


def test_a_report_says_what_was_too_much_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "MOST_WORK", 100_000)
    report = pipeline.explore(SOURCE, Options(timing=Timing(enabled=False)))
    assert report.error is None
    (twin,) = [one for kernel in report.graphs[0].kernels for one in kernel.also if one.language == "triton"]
    assert twin.check is not None and twin.check.startswith("not run: ") and twin.check.endswith("Triton's interpreter")
    assert twin.max_error is None


def test_without_time_for_it_a_kernel_is_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    check = running.check_by_emulation

    def check_in_no_time(compilation: Built, report: Graph, inputs: list[Any], budget: Budget) -> None:
        check(compilation, report, inputs, budget.within(0))

    monkeypatch.setattr(running, "check_by_emulation", check_in_no_time)
    report = pipeline.explore(SOURCE, Options(timing=Timing(enabled=False)))
    (twin,) = [one for kernel in report.graphs[0].kernels for one in kernel.also if one.language == "triton"]
    assert twin.check == f"not run: {offline.NO_TIME}"
    assert twin.max_error is None
