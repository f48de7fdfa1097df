"""Operators that take functions are library calls, with what stands around them compiled; or refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import flex_attention

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.ir.nodes import ExternNode
from compiler.options import Options, Timing
from compiler.pipeline import explore

YES = torch.tensor(True)


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def choice(x: Tensor, flag: Tensor) -> tuple[Tensor, Tensor]:
    a, b = torch.cond(flag, lambda a: (a.sin(), a.cos()), lambda a: (a + 1, a * a), (x * 2,))
    return (a + b).relu(), b


def choice_in_choice(x: Tensor, flag: Tensor) -> Tensor:
    inner = lambda a: torch.cond(a.sum() > 0, lambda b: b * 3, lambda b: b - 3, (a,))  # noqa: E731
    return torch.cond(flag, inner, lambda a: a + 2, (x.sin(),)) + 1


def choice_by_size(x: Tensor) -> Tensor:
    return torch.cond(x.shape[0] >= 5, lambda a: a * 2, lambda a: a - 2, (x.sin(),)).cos()


def loop(x: Tensor) -> tuple[Tensor, Tensor]:
    steps, y = while_loop(lambda i, a: a.sum() < 1000, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x.abs() + 1))
    return y.cos(), steps + 1


def slices(x: Tensor) -> Tensor:
    slices = map_slices(lambda row, y: (row.sin() + y).cos(), x * 2, x[0] + 1)  # type: ignore[arg-type]
    return slices * 3


def recurrence(x: Tensor) -> tuple[Tensor, Tensor]:
    last, all_of_them = scan(lambda state, row: (torch.tanh(state + row), state.sin() * row), x[0] * 0, x * 2, dim=0)
    return last * 2, all_of_them + 1


def attention(x: Tensor) -> Tensor:
    q = x.expand(1, 2, *x.shape) * 2
    return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))) + 1


@torch.compiler.nested_compile_region
def region(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.relu(x).sin(), x * 2


def regions(x: Tensor) -> Tensor:
    a, b = region(x)
    c, d = region(a)
    return b + c + d


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], str]] = {
    "cond, the one way": (choice, (numbers(6, 5), YES), "torch.cond"),
    "cond, the other way": (choice, (numbers(6, 5), ~YES), "torch.cond"),
    "cond in a cond": (choice_in_choice, (numbers(6, 5), YES), "torch.cond"),
    "while_loop": (loop, (numbers(6, 5),), "while_loop"),
    "map": (slices, (numbers(6, 5),), "map"),
    "scan": (recurrence, (numbers(6, 5),), "scan"),
    "flex_attention": (attention, (numbers(16, 16),), "flex_attention"),
    "regions": (regions, (numbers(6, 5),), ""),
}


def library_calls_of(function: Callable[..., Any], *inputs: Tensor, **how: Any) -> tuple[Any, list[str]]:
    seen: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(seen.append):
        result = torch.compile(function, backend=fusionscope, fullgraph=True, **how)(*inputs)
    nodes = [node for compilation in seen for node in compilation.loops.nodes]
    return result, [str(node.target) for node in nodes if isinstance(node, ExternNode)]


@pytest.mark.parametrize("name", CASES)
def test_gives_what_eager_gives(name: str) -> None:
    function, inputs, call = CASES[name]
    ours, calls = library_calls_of(function, *inputs)
    torch.testing.assert_close(ours, function(*inputs))
    assert call in calls if call else not calls, "one call, or the region's own nodes"


def test_a_condition_on_a_size_is_asked_in_every_call() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(choice_by_size, backend=fusionscope, dynamic=True)
    for rows in (7, 4, 5):
        torch.testing.assert_close(compiled(numbers(rows, 3)), choice_by_size(numbers(rows, 3)))


@pytest.mark.parametrize("function", [choice_in_choice, slices, regions], ids=lambda function: function.__name__)
def test_gradients_are_eagers(function: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    flag = (YES,) if function is choice_in_choice else ()
    ours, eager = numbers(6, 5).requires_grad_(), numbers(6, 5).requires_grad_()
    torch.compile(function, backend=fusionscope)(ours, *flag).sum().backward()
    function(eager, *flag).sum().backward()
    torch.testing.assert_close(ours.grad, eager.grad)


PROGRAM = """import torch

@torch.compile
def f(x, w):
    y = x.sin() @ w
    z = torch.cond(y.sum() > 0, lambda a: {yes}, lambda a: {no}, (y,))
    return (z * 3).relu().sum()

f(torch.randn(8, 8), torch.randn(8, 8, requires_grad={is_trained})){backward}
"""


def explored(yes: str, no: str, is_trained: bool = False) -> Any:
    source = PROGRAM.format(yes=yes, no=no, is_trained=is_trained, backward=".backward()" if is_trained else "")
    return explore(source, Options(timing=Timing(enabled=False)))


def test_report_names_the_call_and_says_why() -> None:
    report = explored("a.cos() + 1", "a.sin() - 1", is_trained=True)
    assert report.status == "ok" and report.summary.compiled_error < 1e-5
    calls = [kernel for graph in report.graphs for kernel in graph.kernels if kernel.name == "torch.cond"]
    assert len(calls) == 2, "forward and backward"
    assert all(call.user_lines == [6] and "which of its two functions runs" in (call.source or "") for call in calls)
    assert any("Gradients were not checked from end to end" in note.message for note in report.notes)
    assert "(calls of torch.cond count as one each, but run operator by operator)" in report.summary.verdict
    counted = "How many kernels eager mode launches for graph_0 is not known: what `cond` runs"
    assert report.summary.eager_kernels is None and any(counted in note.message for note in report.notes)


def test_numbers_drawn_in_a_branch_are_not_compared() -> None:
    report = explored("torch.nn.functional.dropout(a)", "a * 1.0")
    assert report.status == "ok" and any("random numbers" in note.message for note in report.notes)


def test_a_branch_that_does_more_than_compute_is_told_what_to_do() -> None:
    error = explored("(print('yes'), a * 2)[1]", "a * 3").error
    assert error is not None and error.type != "InternalError" and error.line == 6
    assert "only compute tensors" in (error.hint or "")
