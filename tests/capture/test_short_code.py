"""The code between a branch that breaks a function and what follows is short, and does what the long one did."""

from __future__ import annotations

import dis
import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.capture.recording.torch_trace import bytecode_seen
from compiler.capture.shortcuts import short_code
from compiler.capture.shortcuts.short_code import shortened
from tests.capture.test_read_outputs import LOOPS, A, B, branch, item, loop, negated_branch, unbroken


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def codes_of(function: Callable[..., Any], *inputs: Any, backend: Any = "eager") -> list[types.CodeType]:
    codes: list[types.CodeType] = []
    with torch.no_grad(), bytecode_seen(lambda _id, _before, after: codes.append(after)):
        torch.compile(function, backend=backend)(*inputs)
    return codes


def behind_the_graph(code: types.CodeType) -> list[str]:
    names = [one.opname for one in dis.get_instructions(code)]
    (start,) = [n for n, one in enumerate(dis.get_instructions(code)) if str(one.argval).startswith("graph_out_")][:1]
    return names[start:]


def many_values(a: Tensor, b: Tensor, scale: float, names: list[str]) -> tuple[Any, ...]:
    pairs = [(a * 2, "x"), (b + 1, "y")]
    known = {"sum": a + b}
    if (a * b).sum() > 0:
        return pairs[0][0] * scale, known["sum"], names, len(pairs)
    return known["sum"] - b, pairs[1][0], scale, names[0]


def within_another(a: Tensor, b: Tensor) -> Tensor:
    return branch(a + 1, b) * 2


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((6,), 2.0))
        self.calls = 0

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        self.calls += 1
        y = a * self.weight
        if y.sum() < b.sum():
            y = y + self.calls
        return y * b


@pytest.mark.parametrize("function", [branch, negated_branch, loop, within_another], ids=lambda f: f.__name__)
def test_it_does_the_same(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend=fusionscope)
    for b in (B, -B, B, -B):
        torch.testing.assert_close(compiled(A, b), function(A, b))


def test_values_of_all_kinds_go_on() -> None:
    compiled = torch.compile(many_values, backend=fusionscope)
    for b in (B, -B, B):
        mine, its = (function(A, b, 2.5, ["p", "q"]) for function in (compiled, many_values))
        torch.testing.assert_close(mine[:2], its[:2])
        assert mine[2:] == its[2:]


def test_a_module_with_state_and_gradients() -> None:
    ours, eager = Scaled(), Scaled()
    compiled = torch.compile(ours, backend=fusionscope)
    for b in (B, B * 100, B):
        for module, call in ((ours, compiled), (eager, eager)):
            module.zero_grad()
            call(A, b).sum().backward()
        torch.testing.assert_close(ours.weight.grad, eager.weight.grad)
    assert ours.calls == eager.calls == 3


@pytest.mark.parametrize("function", [branch, negated_branch, *LOOPS], ids=lambda f: f.__name__)
def test_it_is_short(function: Callable[..., Any]) -> None:
    (long, *_) = codes_of(function, A, B)
    short = shortened(long)
    assert len(behind_the_graph(short)) < 0.5 * len(behind_the_graph(long))
    assert not {"CALL_FUNCTION_EX", "LIST_EXTEND", "STORE_SUBSCR"} & set(behind_the_graph(short))


@pytest.mark.parametrize("function", [item, unbroken], ids=lambda f: f.__name__)
def test_other_code_is_left_alone(function: Callable[..., Any]) -> None:
    for code in codes_of(function, A, B):
        assert shortened(code) is code
    assert shortened(function.__code__) is function.__code__


def test_our_code_alone_is_changed() -> None:
    codes_of(branch, A, B, backend=fusionscope)  # the first one sets up what changes it
    torch._dynamo.reset()
    lengths = {name: len(codes_of(branch, A, B, backend=backend)[0].co_code) for name, backend in
               (("ours", fusionscope), ("eager", "eager"))}  # fmt: skip
    assert lengths["ours"] < 0.7 * lengths["eager"]


def test_errors_name_the_line_of_the_branch() -> None:
    def raises(a: Tensor, b: Tensor) -> Tensor:
        if (a + b).sum() > 0:
            raise ValueError("positive")
        return a

    with pytest.raises(ValueError, match="positive") as caught:
        torch.compile(raises, backend=fusionscope)(A, B)
    lines = [frame.lineno for frame in caught.traceback]
    assert raises.__code__.co_firstlineno in lines or raises.__code__.co_firstlineno + 1 in lines


@pytest.mark.usefixtures("others_frozen")
@pytest.mark.parametrize("is_short", [True, False])
def test_nothing_is_kept_for_longer(is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the rest of the function runs, only what it wants is alive."""
    sizes: list[int] = []

    @torch.compiler.disable
    def look() -> None:
        gc.collect()
        found = (one for one in gc.get_objects() if type(one) is Tensor)
        sizes.append(sum(tuple(map(type, one.shape)) == (int,) and one.shape == (12345,) for one in found))

    def function(a: Tensor, b: Tensor) -> Tensor:
        x = a * 3
        y = a + b
        if (x * y).sum() > 0:
            look()
            return y * b
        return b

    if not is_short:
        monkeypatch.setattr(short_code, "shortened", lambda code: code)
    compiled = torch.compile(function, backend=fusionscope)
    a = torch.ones(12345)
    for _ in range(3):
        compiled(a, a)
    assert sizes[1:] == [2, 2], "the input and y"
