"""Ways to train, each with a model and its twin in eager mode: whoever holds on to what, gradients are the twin's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.replay.replayed import WATCHED_CALLS

CALLS = 2 * WATCHED_CALLS + 2


class Layers(nn.Module):
    """Products, a batch's statistics, and a result that is saved for the backward graph too."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(x)
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
        return torch.sigmoid(self.layers[0](x)), x


class Trained:
    """`ours` is the model as it is compiled; graphs are counted by their phase."""

    ours: Callable[..., Any]

    def __init__(self, device: str) -> None:
        self.device = device
        # In double precision: rounding alone, of sums that grow from step to step, must not look like a mistake.
        self.model, self.twin = (Layers().to(device, torch.float64) for _ in range(2))
        self.twin.load_state_dict(self.model.state_dict())

    def replays(self, phase: str) -> int:
        """Calls that were replays."""
        raise NotImplementedError

    def launched(self, phase: str) -> int:
        """Calls that were launched one by one though there was a recording."""
        raise NotImplementedError

    def batch(self) -> Tensor:
        return torch.randn(4, 8, device=self.device, dtype=torch.float64)

    def both(self) -> list[tuple[Callable[..., Any], nn.Module]]:
        return [(self.ours, self.model), (self.twin, self.twin)]

    def check(self) -> None:
        """Parameters, gradients and buffers are the twin's."""
        for mine, theirs in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-9)
        for buffer, its_twin in zip(self.model.buffers(), self.twin.buffers(), strict=True):
            torch.testing.assert_close(buffer, its_twin, rtol=1e-9, atol=1e-9)


def loss_of(results: tuple[Tensor, Tensor]) -> Tensor:
    return results[0].square().mean() + (results[0] * results[1]).sum()


def steps_with_an_optimiser(trained: Trained) -> None:
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.1) for _, model in trained.both()]
    for _ in range(CALLS):
        x = trained.batch()
        for (call, _), optimiser in zip(trained.both(), optimisers, strict=True):
            optimiser.zero_grad()
            loss_of(call(x)).backward()
            optimiser.step()
        trained.check()
    assert trained.replays("forward") == trained.replays("backward") == CALLS - WATCHED_CALLS


def two_forward_calls_before_a_backward_one(trained: Trained) -> None:
    for step in range(CALLS):
        first, second = trained.batch(), trained.batch()
        for call, _ in trained.both():
            one, two = loss_of(call(first)), loss_of(call(second))
            for loss in (one, two) if step % 2 else (two, one):
                loss.backward()
        trained.check()
    assert trained.replays("forward") and trained.launched("forward")
    assert trained.replays("backward") and trained.launched("backward")


def gradients_are_added_up_over_calls(trained: Trained) -> None:
    for step in range(3 * CALLS):
        x = trained.batch()
        for call, model in trained.both():
            if step % 3 == 0:
                model.zero_grad(set_to_none=step % 2 == 0)
            loss_of(call(x)).backward()
        trained.check()
    assert trained.replays("backward") == 3 * CALLS - WATCHED_CALLS


def a_graph_that_is_retained_is_read_again_after_another_call(trained: Trained) -> None:
    for _ in range(CALLS):
        x, other = trained.batch(), trained.batch()
        for call, _ in trained.both():
            loss = loss_of(call(x))
            loss.backward(retain_graph=True)
            loss_of(call(other)).backward()
            loss.backward()
        trained.check()
    assert trained.replays("forward") and trained.launched("forward")


def calls_without_gradients_and_results_that_are_dropped_or_kept(trained: Trained) -> None:
    kept: list[tuple[Tensor, Tensor]] = []
    for step in range(2 * CALLS):
        x = trained.batch()
        results = []
        for call, _ in trained.both():
            loss = loss_of(call(x))
            with torch.no_grad():
                results.append(call(2 * x)[0])
            call(-x)  # dropped at once
            loss.backward()
            if step % 3 == 0:
                results.append(call(x)[1])  # kept with its graph
        if len(results) == 4:
            kept.append((results[1], results[3]))
        torch.testing.assert_close(results[0], results[len(results) // 2])
        trained.check()
    for mine, theirs in kept:
        torch.testing.assert_close(mine, theirs)
    mine, theirs = kept[0]
    mine.sum().backward()
    theirs.sum().backward()
    trained.check()
    assert trained.replays("forward") and trained.replays("inference")


def what_hooks_make_of_saved_tensors(trained: Trained) -> None:
    kept: list[Tensor] = []

    def keep(saved: Tensor) -> int:
        kept.append(saved.clone())
        return len(kept) - 1

    for step in range(CALLS + 4):
        x = trained.batch()
        for call, _ in trained.both():
            if step < CALLS:
                loss_of(call(x)).backward()
                continue
            kept.clear()
            with torch.autograd.graph.saved_tensors_hooks(keep, kept.__getitem__):
                loss = loss_of(call(x))
            loss.backward()
        trained.check()
    assert trained.replays("forward") == CALLS + 4 - WATCHED_CALLS


def an_output_that_is_saved_too_may_not_be_changed_unseen(trained: Trained) -> None:
    """Its gradient is computed from its value: eager mode refuses, and so must a replay."""
    for _ in range(CALLS):
        loss_of(trained.ours(trained.batch())).backward()
    result, hidden = trained.ours(trained.batch())
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss_of((result, hidden)).backward()
    assert trained.replays("forward")


WAYS = (
    steps_with_an_optimiser,
    two_forward_calls_before_a_backward_one,
    gradients_are_added_up_over_calls,
    a_graph_that_is_retained_is_read_again_after_another_call,
    calls_without_gradients_and_results_that_are_dropped_or_kept,
    what_hooks_make_of_saved_tensors,
    an_output_that_is_saved_too_may_not_be_changed_unseen,
)
