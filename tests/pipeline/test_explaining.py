"""A function of this process, explored where it is: the lines are those of its file, and nothing of it is changed."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fusionscope
from fusionscope import Report

SCALE = 2.0
HERE = Path(__file__).read_text()


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    e = (scaled(x) - x.amax(axis, keepdim=True)).exp()
    return e / e.sum(axis, keepdim=True)


class Block(torch.nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.weight) + scaled(x)


class Shifted:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos() - 1


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(HERE.splitlines(), start=1) if text in line)


UNTIMED: dict[str, Any] = {"timing": {"enabled": False}, "target": "sm_90"}


@pytest.fixture(scope="module")
def report() -> Report:
    return fusionscope.explain(softmax, **UNTIMED)(torch.randn(32, 48), -1)


def test_one_call_has_a_report_with_the_lines_of_its_file(report: Report) -> None:
    assert report.error is None and report.status == "ok"
    assert report.source == HERE
    (kernel,) = report.graphs[0].kernels
    assert set(kernel.user_lines) == {line_of("return x * SCALE"), line_of("e = (scaled"), line_of("return e / e.sum")}
    assert report.graphs[0].function == "softmax"


def test_the_answer_is_printed(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    fusionscope.show(report)
    assert capsys.readouterr().out.startswith(report.summary.verdict.split()[0])


def test_a_module_keeps_its_state_and_its_code() -> None:
    block = Block(8)
    before = Block.forward.__code__, scaled.__code__
    x = torch.randn(4, 8)
    report = fusionscope.explain(block, **UNTIMED)(x)
    assert report.error is None, report.error
    assert {line_of("torch.tanh"), line_of("return x * SCALE")} <= set(report.graphs[0].kernels[0].user_lines)
    assert (Block.forward.__code__, scaled.__code__) == before
    assert inspect.getsourcefile(Block.forward) == __file__
    assert torch.equal(block(x), torch.tanh(x) + 2 * x)


def test_a_step_of_training_has_gradients() -> None:
    block = Block(8)
    optimizer = torch.optim.SGD(block.parameters(), 0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = block(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    report = fusionscope.explain(step, **UNTIMED)(torch.randn(4, 8))
    assert report.status == "ok", report.error
    assert "backward" in {graph.phase for graph in report.graphs}


def test_a_function_of_a_function_and_what_it_changes() -> None:
    factor = 3.0

    def updates(x: torch.Tensor) -> torch.Tensor:
        x.mul_(factor)
        return x.sin()

    x = torch.ones(16)
    report = fusionscope.explain(updates, **UNTIMED)(x)
    assert report.error is None, report.error
    assert line_of("x.mul_(factor)") in report.graphs[0].kernels[0].user_lines
    assert torch.equal(x, torch.ones(16)), "a copy was changed"


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (functools.partial(softmax, axis=-1), "return e / e.sum"),
        (functools.partial(functools.partial(Block(8))), "torch.tanh"),
        (Shifted(), "return x.cos()"),
        (functools.partial(Shifted()), "return x.cos()"),
    ],
)
def test_a_partial_and_an_object_have_the_lines_of_what_they_call(function: Any, line: str) -> None:
    report = fusionscope.explain(function, **UNTIMED)(torch.randn(4, 8))
    assert report.error is None and report.source == HERE
    assert line_of(line) in report.graphs[0].kernels[0].user_lines


async def awaited(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def parts(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x.sin()


class Awaited:
    async def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


@functools.wraps(awaited)
def finished(x: torch.Tensor) -> torch.Tensor:
    return asyncio.run(awaited(x))


@pytest.mark.parametrize("function", [awaited, functools.partial(awaited), Awaited(), parts])
def test_what_computes_nothing_when_it_is_called_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="put what it computes into a plain function"):
        fusionscope.explain(function)


def test_a_function_that_awaits_another_is_explored() -> None:
    assert callable(fusionscope.explain(finished))


def test_what_goes_wrong_is_the_reports() -> None:
    report = fusionscope.explain(softmax, **UNTIMED)(torch.randn(4, 4), 7)
    assert report.error is not None and report.error.line == line_of("e = (scaled")
    with pytest.raises(TypeError, match="takes a function or a module, not a int"):
        fusionscope.explain(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes the text of a program; fusionscope.explain\(function\)\(x\)"):
        fusionscope.explore(softmax)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the options are an Options, .* not a dict"):
        fusionscope.explore("import torch", {"device": "cpu"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a sweep changes sizes in the text"):
        fusionscope.explain(softmax, sweep={"name": "N", "values": [1, 2]})


def test_a_kernel_that_computes_a_value_again_leads_to_the_lines_behind_it() -> None:
    def steps(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for step in range(3):
            x = torch.sin(x) * y
            y = torch.tanh(y + x.sum(1 - step % 2, keepdim=True))
        return x, y

    (graph,) = fusionscope.explain(steps)(*torch.randn(2, 64, 64)).graphs
    again = {node for kernel in graph.kernels for node in kernel.computes_again}
    assert again
    for kernel in graph.kernels:
        assert all(line.user_lines for line in kernel.lines if again.intersection(line.nodes))
