"""What the code around a graph does with each of its outputs: which of them it only reads the value of."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import compiler.compile as compile_module
from compiler.backend import fusionscope
from compiler.capture.recording.torch_trace import bytecode_seen
from compiler.capture.shortcuts.read_outputs import outputs_only_read
from compiler.runtime.host.host_values import HostValue

A, B = torch.arange(1.0, 7.0), torch.linspace(-1, 3, 6)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def branch(a: Tensor, b: Tensor) -> Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def negated_branch(a: Tensor, b: Tensor) -> Tensor:
    if not (b.max() > 0):
        a = a + 1
    return a * 2


def loop(a: Tensor, b: Tensor) -> Tensor:
    while (b * b).sum() > 1:
        b = b / 2
    return a + b


def branch_on_a_number(a: Tensor, b: Tensor) -> Tensor:
    return a + 1 if b.sum() else a - 1


def item(a: Tensor, b: Tensor) -> Tensor:
    scale = (b * 2).sum().item()
    return a * scale


def whole_number(a: Tensor, b: Tensor) -> Tensor:
    count = int((b > 0).sum())
    return a * count


def second_output(a: Tensor, b: Tensor) -> Tensor:
    return a * 2 + torch.tensor((b > 0).sum().tolist())


def condition_kept(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    condition = b.sum() < 0
    if condition:
        a = a + 1
    return a * 2, condition


def item_of_a_result(a: Tensor, b: Tensor) -> Tensor:
    total = (b * 2).sum()
    return a * total.item() + total


def printed(a: Tensor, b: Tensor) -> Tensor:
    print(b.sum())
    return a + 1


def rows_apart(a: Tensor, b: Tensor) -> Tensor:
    first, second = [int(value) for value in (b * 2)[:2]]
    return a + first * second


def unbroken(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, b.sum() < 0


#: Python 3.14 tests a `while` in one place, within the loop, and Dynamo compiles no function that breaks in a loop.
LOOPS = (loop,) if sys.version_info < (3, 14) else ()
READ = {
    branch: [{0: "truth"}],
    negated_branch: [{0: "truth"}],
    **{one: [{0: "truth"}] for one in LOOPS},
    branch_on_a_number: [{0: "truth"}],
    item: [{0: "value"}],
    whole_number: [{0: "value"}],
    second_output: [{1: "value"}],
}
USED = [condition_kept, item_of_a_result, printed, rows_apart, unbroken]


def codes_of(function: Callable[..., Any]) -> list[types.CodeType]:
    """Of the first function that Dynamo compiles, and those that go on after its breaks."""
    codes: list[types.CodeType] = []
    with torch.no_grad(), bytecode_seen(lambda _id, _before, after: codes.append(after)):
        torch.compile(function, backend="eager")(A, B)
    return codes


@pytest.mark.parametrize("function", READ, ids=lambda f: f.__name__)
def test_what_is_only_read_is_found(function: Callable[..., Any]) -> None:
    found = [outputs_only_read(code) for code in codes_of(function)]
    assert found[: len(READ[function])] == READ[function]


@pytest.mark.parametrize("function", USED, ids=lambda f: f.__name__)
def test_what_is_used_besides_stays_a_tensor(function: Callable[..., Any]) -> None:
    assert not any(map(outputs_only_read, codes_of(function)))


def test_code_that_is_nobodys_is_left_alone() -> None:
    assert outputs_only_read(branch.__code__) == {}
    (code, *_) = codes_of(branch)
    # Outputs under another name, and the same outputs once more behind the branch.
    other = code.replace(co_varnames=tuple(name.replace("graph_out_0", "other") for name in code.co_varnames))
    assert outputs_only_read(other) == {}


class Ways:
    """Values get to the host in a way that notes what was asked, in the place of one through a GPU's stream."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.asked: list[tuple[torch.dtype, bool]] = []

    def way(self, _device: torch.device, dtype: torch.dtype, is_truth: bool) -> HostValue:
        self.asked.append((dtype, is_truth))
        sent: set[int] = set()

        def take(value: Tensor) -> Any:
            sent.remove(id(value))
            self.taken.append(bool(value) if is_truth else value.clone())
            value.fill_(0)
            return self.taken[-1]

        return HostValue(lambda: torch.zeros((), dtype=dtype), lambda value: sent.add(id(value)), take)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    ways = Ways()

    def all_of(schedule: Any, _plan: Any, _kernels: Any, places: Any) -> dict[int, str]:
        return {place: schedule.graph.outputs[place].buffer for place in places}

    monkeypatch.setattr(compile_module, "has_host_values", lambda device: True)
    monkeypatch.setattr(compile_module, "outputs_for_host", all_of)
    monkeypatch.setattr(compile_module, "host_value", ways.way)
    return ways


@pytest.mark.parametrize("function", READ, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_graph_then_gives_the_value(function: Callable[..., Any], mode: Any, ways: Ways) -> None:
    compiled = torch.compile(function, backend=fusionscope)
    with mode():
        for b in (B, -B, B, -B):
            torch.testing.assert_close(compiled(A, b), function(A, b))
    assert len(ways.taken) >= 4
    for value in ways.taken:
        assert isinstance(value, bool) or (isinstance(value, Tensor) and value.shape == ())


def test_a_truth_is_one_of_python_and_a_number_stays_a_tensor(ways: Ways) -> None:
    for function in (branch, branch_on_a_number, item):
        torch.compile(function, backend=fusionscope)(A, B)
    assert ways.asked == [(torch.bool, True), (torch.float32, False), (torch.float32, False)]
    assert [type(value) for value in ways.taken] == [bool, Tensor, Tensor]


@pytest.mark.parametrize("function", USED, ids=lambda f: f.__name__)
def test_else_it_gives_tensors(function: Callable[..., Any], ways: Ways) -> None:
    torch.testing.assert_close(torch.compile(function, backend=fusionscope)(A, B), function(A, B))
    assert not ways.asked


def test_where_gradients_are_wanted_it_gives_tensors(ways: Ways) -> None:
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    torch.compile(branch, backend=fusionscope)(a, b).sum().backward()
    assert a.grad is not None and not ways.asked
