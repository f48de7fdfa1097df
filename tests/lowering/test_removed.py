"""What becomes no loop is listed with its line, and what repeats an earlier call is computed once."""

from __future__ import annotations

import pytest
import torch

from compiler.compile import build
from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Graph
from compiler.runtime.checking.verify import relative_error
from tests.compile_program import compile_program

HEAD = "import torch\nx = torch.randn(8, 16)\n@torch.compile\ndef f(x):\n"


def graph_of(body: str) -> Graph:
    source = HEAD + "".join(f"    {line}\n" for line in body.split("; ")) + "f(x)\n"
    report = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule")))
    assert report.error is None
    return report.graphs[0]


@pytest.mark.parametrize(
    ("body", "kind", "line", "because"),
    [
        ("y = torch.cos(x); return torch.sin(x)", "dead", 5, "no result of the program needs it"),
        ("y = x.sum(1); z = x.sum(1); return y * z.exp()", "common_subexpression", 6, "`sum_1` computed the same"),
        ("y = x.t(); return torch.sin(y)", "view", 5, "at 16 * d1 + d0"),
        ("m = torch.ones_like(x); return x + m", "constant", 5, "it reads no tensor"),
        ("return x + torch.full((8, 3), 2.5).mean()", "constant", 5, "it reads no tensor"),
        ("y = x.float(); return torch.sin(y)", "cast", 5, "has that dtype already"),
        ("return torch.sin(x.to(torch.float32))", "cast", 5, "has that dtype already"),
        ("return torch.sin(x.contiguous())", "copy", 5, "has those strides already"),
        ("y = x.contiguous(); return torch.sin(y)", "copy", 5, "has those strides already"),
    ],
)
def test_what_is_removed_is_listed_with_its_line(body: str, kind: str, line: int, because: str) -> None:
    graph = graph_of(body)
    *_, removed = [removed for removed in graph.removed if removed.kind == kind]
    assert removed.lines == [line] and because in removed.because
    assert removed.node in {node.name for node in (*graph.fx, *graph.aten)}
    assert all(removed.node not in loop.origins for loop in graph.loops)


def test_nothing_that_was_kept_is_listed() -> None:
    assert graph_of("y = torch.sin(x); return torch.cos(y) + y").removed == []
    assert graph_of("y = x.double(); z = x.t().contiguous(); return y.sum(), z.sin()").removed[0].kind == "view"


def repeated(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(1) * x.sum(1, keepdim=True), torch.sin(x), torch.sin(x), x.sum(1), x.t().sum(0), x * 1, x * 1.0


def test_a_repeated_call_is_computed_once_and_results_stay_apart() -> None:
    x = torch.randn(8, 8)
    compilation = compile_program(repeated, x)
    assert sum(node.name.startswith("sin") and node.name != "sin" for node in compilation.loops.nodes) <= 1
    results, expected = build(compilation).executable.call([x]), repeated(x)
    for result, wanted in zip(results, expected, strict=True):
        assert relative_error(result, wanted.double()) < 1e-5
    assert len({result.data_ptr() for result in results}) == len(results)


def test_random_numbers_are_drawn_each_time() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.rand_like(x), torch.rand_like(x)

    one, two = build(compile_program(function, torch.randn(64))).executable.call([torch.randn(64)])
    assert not torch.equal(one, two)


def test_arguments_that_only_look_alike_are_not_the_same() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.copysign(x, 0.0), torch.copysign(x, -0.0), x.sum(0), x.sum(0, dtype=torch.float64)

    x = torch.randn(8)
    for result, wanted in zip(build(compile_program(function, x)).executable.call([x]), function(x), strict=True):
        assert torch.equal(result, wanted) or relative_error(result, wanted.double()) < 1e-6


def test_reductions_of_constants_are_numbers() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        ones, whole = torch.ones(4, 6), torch.full((3, 5), 2, dtype=torch.int64)
        values = [ones.sum(), ones.mean(1).sum(), ones.bool().all(), (ones * 3).amax(0)[0], whole.prod(), whole.sum()]
        values += [torch.full((7,), float("inf")).sum(), torch.full((7,), 0.1, dtype=torch.bfloat16).sum()]
        return [x * value for value in values] + [torch.arange(10).sum() * x]

    x = torch.randn(5)
    compilation = compile_program(function, x)
    assert [node.name for node in compilation.loops.nodes if node.is_reduction] == ["sum_6"]  # type: ignore[union-attr]
    for result, wanted in zip(build(compilation).executable.call([x]), function(x), strict=True):
        torch.testing.assert_close(result, wanted)
