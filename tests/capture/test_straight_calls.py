"""A call goes from Dynamo straight to its kernels where AOTAutograd would do no more, and through it where it does."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from compiler.backend import BoxedGraph, fusionscope


@dataclass
class Calls:
    """For each call of a compiled graph: whether AOTAutograd stood in between."""

    detours: list[bool] = field(default_factory=list)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    seen = Calls()
    run, begin = BoxedGraph.__call__, BoxedGraph.__init__

    def note() -> None:
        files = [frame.filename for frame in traceback.extract_stack()]
        seen.detours.append(any("_aot_autograd" in name for name in files))

    def noted(graph: BoxedGraph, inputs: list[Any]) -> Any:
        note()
        return run(graph, inputs)

    def begun(graph: BoxedGraph, implementation: Any) -> None:
        begin(graph, implementation)
        direct = graph.direct

        def noted_directly(*inputs: Any) -> Any:
            note()
            return None if direct is None else direct(*inputs)

        graph.direct = direct and noted_directly

    monkeypatch.setattr(BoxedGraph, "__call__", noted)
    monkeypatch.setattr(BoxedGraph, "__init__", begun)
    torch._dynamo.reset()
    yield seen
    torch._dynamo.reset()


def check(function: Callable[..., Any], *inputs: Any) -> Any:
    """Compiled against eager on the same inputs, which both may change; the compiled result."""
    mine, its = ([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs] for _ in range(2))
    result = torch.compile(function, backend=fusionscope)(*mine)
    torch.testing.assert_close((result, mine), (function(*its), its))
    return result


X, Y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


def into_each(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * y


def test_results_of_kernels_go_straight(calls: Calls) -> None:
    check(lambda x, y: (x + y, (x * y).sum(0)), X, Y)
    assert calls.detours == [False]


def test_the_same_tensor_twice_goes_straight(calls: Calls) -> None:
    result = torch.compile(lambda x, y: x + 2 * y, backend=fusionscope)(X, X)
    torch.testing.assert_close(result, 3 * X)
    assert calls.detours == [False]


@pytest.mark.parametrize(
    "function",
    [into_each, lambda x, y: (x.t(), x + y)],
    ids=["changes an input", "gives a view of one"],
)
def test_what_aotautograd_has_to_finish_goes_through_it(calls: Calls, function: Callable[..., Any]) -> None:
    check(function, X, Y)
    assert calls.detours == [True]


def test_results_share_memory_as_in_eager(calls: Calls) -> None:
    whole, row = torch.compile(lambda x: (z := x + 1, z[0]), backend=fusionscope)(X.clone())
    row.zero_()
    assert whole[0].eq(0).all()


@pytest.mark.parametrize("enabled", [True, False])
def test_library_calls_record_no_gradients(calls: Calls, enabled: bool) -> None:
    recorded: list[bool] = []

    @torch.library.custom_op(f"straight_calls::look_at_{enabled}", mutates_args=())
    def look_at(x: torch.Tensor) -> torch.Tensor:
        recorded.append(x.requires_grad)
        return x > 0

    look_at.register_fake(lambda x: torch.empty_like(x, dtype=torch.bool))
    weight = torch.ones(3, 4, requires_grad=True)
    with torch.set_grad_enabled(enabled):
        result = torch.compile(lambda x, weight: look_at(x @ weight), backend=fusionscope)(X, weight)
        assert torch.is_grad_enabled() == enabled
    assert not result.requires_grad and recorded == [False]
    assert calls.detours == [False]


def test_gradients_are_on_again_after_a_failure() -> None:
    fails: list[Exception] = []

    @torch.library.custom_op("straight_calls::may_fail", mutates_args=())
    def may_fail(x: torch.Tensor) -> torch.Tensor:
        if fails:
            raise fails[0]
        return x.clone()

    may_fail.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: may_fail(x + 1) * 2, backend=fusionscope)
    torch.testing.assert_close(compiled(X), (X + 1) * 2)
    fails.append(ValueError("a call failed"))
    with pytest.raises(ValueError, match="a call failed"):
        compiled(X)
    assert torch.is_grad_enabled()
    fails.clear()
    torch.testing.assert_close(compiled(X), (X + 1) * 2)


def test_training_goes_through_aotautograd(calls: Calls) -> None:
    x = X.clone().requires_grad_()
    torch.autograd.backward(torch.compile(lambda x: x.sin().sum(), backend=fusionscope)(x))
    torch.testing.assert_close(x.grad, X.cos())
    assert calls.detours[0]


def test_autocast_is_aotautograds(calls: Calls) -> None:
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        result = torch.compile(lambda x, y: x @ y.t(), backend=fusionscope)(X, Y)
    assert result.dtype == torch.bfloat16
    assert calls.detours == [True]


def test_sizes_that_differ_from_call_to_call_go_straight(calls: Calls) -> None:
    compiled = torch.compile(lambda x: (x * x.shape[0]).sum(0), backend=fusionscope, dynamic=True)
    for rows in (4, 5, 6):
        torch.testing.assert_close(compiled(torch.ones(rows, 3)), torch.full((3,), float(rows * rows)))
    assert len(calls.detours) == 3


def test_results_of_open_sizes_keep_them_open_after_a_graph_break(calls: Calls) -> None:
    """AOTAutograd marks them, so that the next graph is not compiled for one size alone."""
    compiled = torch.compile(lambda x: broken(x * 2) + 1, backend=fusionscope, dynamic=True)
    for rows in (4, 5, 6):
        torch.testing.assert_close(compiled(torch.ones(rows, 3)), torch.full((rows, 3), 3.0))


@torch.compiler.disable
def broken(x: torch.Tensor) -> torch.Tensor:
    return x
