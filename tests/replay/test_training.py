"""Training with a recorder that pretends: gradients are eager's, whoever holds on to what a forward graph has saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import BoxedGraph
from compiler.capture.aot import compile_through_aot
from compiler.capture.captured import Implementation, Phase
from compiler.capture.passed import saved_outputs
from compiler.replay.held import HeldAddresses, users_of_memory
from compiler.replay.replayed import WATCHED_CALLS, Facts, ReplayedCall
from tests.replay.pretended import PretendedRecorder

CALLS = 2 * WATCHED_CALLS + 2


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    assert users_of_memory is not None
    yield


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.norm(self.first(x)))
        return torch.sigmoid(self.second(hidden)), hidden


class Trained:
    """A model whose graphs are run operator by operator and replayed by pretence, beside its twin in eager mode."""

    def __init__(self, model: Callable[[], nn.Module] = Layers) -> None:
        self.model, self.twin = model(), model()
        self.twin.load_state_dict(self.model.state_dict())
        self.calls: list[tuple[Phase, ReplayedCall]] = []
        self.held = HeldAddresses()
        self.ours = torch.compile(self.model, backend=self._backend)

    def _backend(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_through_aot(graph, inputs, self._compile)

    def _compile(self, part: torch.fx.GraphModule, phase: Phase) -> Implementation:
        recorder = PretendedRecorder()
        recorder.held = self.held
        nodes = [node for node in part.graph.nodes if node.op == "placeholder"]
        written = [
            n for n, node in enumerate(nodes) if any(user.target == torch.ops.aten.copy_.default for user in node.users)
        ]
        facts = Facts(10, 4e12, frozenset(written), saved_outputs(part))
        made = ReplayedCall(lambda inputs: list(part.forward(*inputs)), facts, recorder, "auto")
        self.calls.append((phase, made))
        return BoxedGraph(made)

    def replays(self, phase: Phase) -> int:
        return sum(made.replays for of, made in self.calls if of == phase)

    def launched(self, phase: Phase) -> int:
        return sum(made.launched for of, made in self.calls if of == phase)

    def check(self) -> None:
        """Parameters, gradients and buffers are the twin's."""
        for mine, theirs in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs)
            torch.testing.assert_close(mine.grad, theirs.grad)
        for mine, theirs in zip(self.model.buffers(), self.twin.buffers(), strict=True):
            torch.testing.assert_close(mine, theirs)

    def both(self) -> list[tuple[Callable[..., Any], nn.Module]]:
        return [(self.ours, self.model), (self.twin, self.twin)]


def loss_of(results: tuple[Tensor, Tensor]) -> Tensor:
    return results[0].square().mean() + (results[0] * results[1]).sum()


def test_steps_are_replayed_without_copies_of_what_is_saved() -> None:
    trained = Trained()
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.1) for _, model in trained.both()]
    for _ in range(CALLS):
        x = torch.randn(4, 8)
        for (call, _), optimiser in zip(trained.both(), optimisers, strict=True):
            optimiser.zero_grad()
            loss_of(call(x)).backward()
            optimiser.step()
        trained.check()
    assert trained.replays("forward") == trained.replays("backward") == CALLS - WATCHED_CALLS
    backward = next(made for phase, made in trained.calls if phase == "backward")
    assert backward.held_inputs and not set(backward.held_inputs) & set(backward.copied)
    assert all(made.recordings == 1 for _, made in trained.calls)


def test_two_forward_calls_before_a_backward_one() -> None:
    trained = Trained()
    for step in range(CALLS):
        first, second = torch.randn(4, 8), torch.randn(4, 8)
        for call, _ in trained.both():
            one, two = loss_of(call(first)), loss_of(call(second))
            for loss in (one, two) if step % 2 else (two, one):
                loss.backward()
        trained.check()
    assert trained.replays("forward") and trained.launched("forward")
    assert trained.replays("backward") and trained.launched("backward")


def test_gradients_are_added_up_over_calls() -> None:
    trained = Trained()
    for step in range(3 * CALLS):
        x = torch.randn(4, 8)
        for call, model in trained.both():
            if step % 3 == 0:
                model.zero_grad(set_to_none=step % 2 == 0)
            loss_of(call(x)).backward()
        trained.check()
    assert trained.replays("backward") == 3 * CALLS - WATCHED_CALLS


def test_a_graph_that_is_retained_is_read_again_after_another_call() -> None:
    trained = Trained()
    for _ in range(CALLS):
        x, other = torch.randn(4, 8), torch.randn(4, 8)
        for call, _ in trained.both():
            loss = loss_of(call(x))
            loss.backward(retain_graph=True)
            loss_of(call(other)).backward()
            loss.backward()
        trained.check()
    assert trained.replays("forward") and trained.launched("forward")


def test_calls_without_gradients_and_results_that_are_dropped_or_kept() -> None:
    trained = Trained()
    kept: list[tuple[Tensor, Tensor]] = []
    for step in range(2 * CALLS):
        x = torch.randn(4, 8)
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


def test_what_hooks_make_of_saved_tensors() -> None:
    trained = Trained()
    kept: list[Any] = []
    for step in range(CALLS + 4):
        x = torch.randn(4, 8)
        for call, _ in trained.both():
            if step < CALLS:
                loss_of(call(x)).backward()
                continue
            kept.clear()
            with torch.autograd.graph.saved_tensors_hooks(
                lambda t: kept.append(t.clone()) or len(kept) - 1, lambda n: kept[n]
            ):
                loss = loss_of(call(x))
            loss.backward()
        trained.check()
    assert trained.replays("forward") == CALLS + 4 - WATCHED_CALLS


def test_an_output_that_is_saved_too_may_not_be_changed_unseen() -> None:
    """Its gradient is computed from its value: eager mode refuses, and so must a replay."""
    trained = Trained()
    for _ in range(CALLS):
        loss_of(trained.ours(torch.randn(4, 8))).backward()
    result, hidden = trained.ours(torch.randn(4, 8))
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss_of((result, hidden)).backward()
    assert trained.replays("forward")
