"""What a call of ours passes before it gets to its graph is short, and what it leaves out was of no use to it."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from compiler.backend import fusionscope
from compiler.capture.recording.torch_trace import bytecode_seen

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def names_in_code(backend: Any, *inputs: torch.Tensor) -> set[str]:
    """All names in the code that Dynamo made for a function."""
    codes: list[types.CodeType] = []
    with bytecode_seen(lambda _id, _before, after: codes.append(after)):
        torch.compile(lambda x: x * 2 + 1, backend=backend)(*inputs)
    return {name for code in codes for name in code.co_names}


def test_our_code_has_no_marks_for_a_profiler_and_the_code_of_others_keeps_them() -> None:
    names_in_code(fusionscope, X)  # the first one sets up what thins them
    assert not any("pregraph" in name for name in names_in_code(fusionscope, X))
    assert not any("pregraph" in name for name in names_in_code(fusionscope, X.clone().requires_grad_()))
    assert any("pregraph" in name for name in names_in_code("eager", X))


def test_a_compilation_that_fails_thins_nobody_elses_code() -> None:
    def fails(graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        fusionscope(graph, inputs)
        raise ValueError("not this backend")

    names_in_code(fusionscope, X)
    with pytest.raises(Exception, match="not this backend"):
        names_in_code(fails, X)
    assert any("pregraph" in name for name in names_in_code("eager", X))


def test_it_runs_under_a_profiler() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, backend=fusionscope)
    with torch.profiler.profile():
        torch.testing.assert_close(compiled(X), X * 2 + 1)
        torch.testing.assert_close(compiled(X), X * 2 + 1)


def scaled_product(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x.t()) * 2


def test_dynamo_calls_the_graph_itself_and_follows_into_nothing_there() -> None:
    compiled = torch.compile(scaled_product, backend=fusionscope)
    made: list[types.CodeType] = []
    with bytecode_seen(lambda _id, _before, after: made.append(after)):
        for _ in range(3):
            torch.testing.assert_close(compiled(X), scaled_product(X))
    (graph,) = [value for name, value in globals().items() if name.startswith("__compiled_fn")]
    assert isinstance(graph, types.BuiltinFunctionType)
    assert len(made) == 1, "what the graph calls in Python was compiled as well"
    for other in (X, X[:1]):
        torch.testing.assert_close(compiled(other), scaled_product(other))
    made.clear()
    torch._dynamo.reset()
    gc.collect()
    assert not any(name.startswith("__compiled_fn") for name in globals())


def guards_of(inputs: torch.Tensor) -> list[str]:
    kinds: list[str] = []

    def note(entries: Any) -> list[bool]:
        kinds.extend(entry.guard_type for entry in entries)
        return [True for _ in entries]

    torch.compile(lambda x: x.sin() * 2, backend=fusionscope, options={"guard_filter_fn": note})(inputs)
    return kinds


def test_only_a_graph_that_saves_tensors_is_guarded_by_the_hooks_on_those() -> None:
    assert "AUTOGRAD_SAVED_TENSORS_HOOKS" not in guards_of(X)
    assert "AUTOGRAD_SAVED_TENSORS_HOOKS" in guards_of(X.clone().requires_grad_())


def test_hooks_on_saved_tensors_are_called_for_a_graph_that_saves_some() -> None:
    """Also where the function was compiled before there were any, for a call that saves none."""
    packed: list[torch.Size] = []

    def pack(x: torch.Tensor) -> torch.Tensor:
        packed.append(x.shape)
        return x

    compiled = torch.compile(lambda x: x.sin() * 2, backend=fusionscope)
    torch.testing.assert_close(compiled(X), X.sin() * 2)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        torch.testing.assert_close(compiled(X), X.sin() * 2)
        assert not packed
        x = X.clone().requires_grad_()
        torch.autograd.backward(compiled(x).sum())
    torch.testing.assert_close(x.grad, X.cos() * 2)
    assert packed
