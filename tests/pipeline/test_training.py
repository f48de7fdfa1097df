"""Training compiled by us gives eager's losses, gradients and parameters, no further from float64 than eager's are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

from compiler.backend import fusionscope
from compiler.runtime.checking.judge import TOLERANCE, is_correct
from compiler.runtime.checking.verify import relative_error
from tests.pipeline.training_programs import PROGRAMS


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=fusionscope)


def outcome(program: Any, compile_with: Any, dtype: torch.dtype) -> Any:
    torch.manual_seed(1)
    return program(compile_with, dtype)


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_gradients_and_parameters_are_eagers(name: str) -> None:
    program = PROGRAMS[name]
    eager = outcome(program, lambda function: function, torch.float32)
    ours = outcome(program, compiled, torch.float32)
    exact = outcome(program, lambda function: function, torch.float64)
    if "autocast" in name:
        # What was rounded to bfloat16 stays rounded when it is cast back.
        assert relative_error(ours, exact) <= max(TOLERANCE[torch.bfloat16], 2 * relative_error(eager, exact))
    else:
        assert is_correct(ours, exact, eager)


def test_a_backward_pass_within_a_compiled_function_breaks_no_graph_of_the_compiler() -> None:
    layer, breaks = torch.nn.Linear(4, 4), []

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = layer(x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    for backend in ("aot_eager", "fusionscope"):
        torch._dynamo.reset()
        counters["graph_break"].clear()
        torch.compile(step, backend=backend)(torch.randn(3, 4))
        breaks.append(set(counters["graph_break"]))
    assert breaks[0] and breaks[1] == breaks[0]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_backward_pass_may_keep_its_graph_after_one_that_did_not(dynamic: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4), torch.nn.GELU())
    ours = torch.compile(model, backend="fusionscope", dynamic=dynamic)
    x = torch.randn(3, 8, requires_grad=True)
    ours(x).square().sum().backward()
    loss = ours(x).square().sum()
    gradients = [torch.autograd.grad(loss, x, retain_graph=keeps)[0] for keeps in (True, True, False)]
    wanted = torch.autograd.grad(model(x).square().sum(), x)[0]
    torch.testing.assert_close(gradients, [wanted] * 3)


def test_several_gradients_at_once_end_in_an_error_that_helps() -> None:
    x = torch.randn(3, requires_grad=True)
    result = compiled(lambda x: x.sin() * x)(x)
    with pytest.raises(TypeError, match="is_grads_batched=True, differentiate the function that is not compiled"):
        torch.autograd.grad(result, x, torch.eye(3), is_grads_batched=True)


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_dropout_drops_the_same_elements_forward_and_backward(is_checkpointed: bool) -> None:
    """Each element that survived has the gradient of its scale, and each that did not has none."""

    def dropped(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x * 3, 0.25) * 2

    def through(x: torch.Tensor) -> Any:
        return checkpoint(dropped, x, use_reentrant=False) if is_checkpointed else dropped(x)

    function = compiled(through)
    x = torch.ones(64, 64, requires_grad=True)
    result = function(x)
    torch.autograd.backward(result.sum())
    survived = result.detach() != 0
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(survived, 8.0, 0.0))
    torch.testing.assert_close(result.detach(), torch.where(survived, 8.0, 0.0))
    assert 0.70 < survived.float().mean().item() < 0.80


def test_dropout_of_whole_channels_draws_once_for_each() -> None:
    x = torch.randn(8, 16, 4, 4)
    function = compiled(lambda x: F.dropout2d(x, 0.25, True))
    dropped = (function(x) == 0).flatten(2)
    assert torch.equal(dropped.all(2), dropped.any(2))
    assert 0 < dropped.all(2).sum() < 8 * 16


def test_dropout_follows_the_seed() -> None:
    function = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(256)
    torch.manual_seed(5)
    first, second = function(x), function(x)
    torch.manual_seed(5)
    assert torch.equal(function(x), first) and not torch.equal(first, second)
