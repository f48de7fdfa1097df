"""Training with a recorder that pretends: gradients are eager's, whoever holds on to what a forward graph has saved."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from compiler.backend import BoxedGraph
from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.captured import Implementation, Phase
from compiler.passes.layout.passed import saved_outputs
from compiler.replay.held import HeldAddresses, users_of_memory
from compiler.replay.replayed import WATCHED_CALLS, Choice, Facts, ReplayedCall
from tests.replay.pretended import PretendedRecorder, replayed_call
from tests.replay.ways_to_train import WAYS, Trained, steps_with_an_optimiser


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    assert users_of_memory is not None
    yield


class Pretended(Trained):
    """Its graphs run operator by operator and are replayed by pretence."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.calls: list[ReplayedCall] = []
        self.held = HeldAddresses()
        self.ours = torch.compile(self.model, backend=self._backend)

    def _backend(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_through_aot(graph, inputs, self._compile)

    def _compile(self, part: torch.fx.GraphModule, phase: Phase) -> Implementation:
        recorder = PretendedRecorder()
        recorder.held = self.held
        nodes = list(part.graph.find_nodes(op="placeholder"))
        written = [
            n for n, node in enumerate(nodes) if any(user.target == torch.ops.aten.copy_.default for user in node.users)
        ]
        facts = Facts(10, 4e12, phase, frozenset(written), saved_outputs(part))
        made = replayed_call(lambda inputs: list(part.forward(*inputs)), facts, recorder)
        self.calls.append(made)
        return BoxedGraph(made)

    def replays(self, phase: str) -> int:
        return sum(made.replays for made in self.calls if made.phase == phase)

    def launched(self, phase: str) -> int:
        return sum(made.launched for made in self.calls if made.phase == phase)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_training(way: Callable[[Trained], None]) -> None:
    way(Pretended())


def test_what_is_saved_is_not_copied() -> None:
    trained = Pretended()
    steps_with_an_optimiser(trained)
    backward = next(made for made in trained.calls if made.phase == "backward")
    assert backward.held_inputs and not set(backward.held_inputs) & set(backward.copied)


def test_no_more_is_held_than_all_recordings_may() -> None:
    """Unless it is asked for; what a recording that was let go has held counts no more."""

    def made_of(held: HeldAddresses, choice: Choice) -> ReplayedCall:
        recorder = PretendedRecorder()
        recorder.held = held
        facts = Facts(10, 4e12, "forward", held=frozenset({1}), most_held_bytes=100)
        return replayed_call(lambda inputs: [inputs[0].sum(), inputs[0] * 2], facts, recorder, choice)

    held, x = HeldAddresses(), torch.ones(16)
    first, second, asked = made_of(held, "auto"), made_of(held, "auto"), made_of(held, "on")
    for call in (first, second, asked):
        for _ in range(WATCHED_CALLS + 2):
            call([x])
    assert [call.decision.reason.split(".")[1] for call in (first, second, asked)] == [
        "replayed",
        "memory",
        "asked_for",
    ]
    assert held.bytes == 128
    del first, call
    gc.collect()
    assert held.bytes == 64


def test_a_view_is_held_until_nobody_has_it() -> None:
    """Not even its base, of which torch counts as many users as of the view."""
    recorder = PretendedRecorder()
    facts = Facts(10, 4e12, "forward", held=frozenset({1}))
    call = replayed_call(lambda inputs: [inputs[0].sum(), (inputs[0] * 2).t()], facts, recorder)
    for _ in range(WATCHED_CALLS + 4):
        call([torch.ones(2, 3)])
    assert (call.replays, call.launched) == (4, 0)
    kept = call([torch.ones(2, 3)])[1].reshape(-1)[0:1].detach()
    part = call([torch.full((2, 3), 5.0)])[1][1]
    assert (call.replays, call.launched) == (6, 0) and kept.item() == 2.0
    assert call([torch.zeros(2, 3)])[1].tolist() == [[0, 0]] * 3
    assert (call.replays, call.launched) == (6, 1) and part.tolist() == [10, 10]
    del part
    call([torch.ones(2, 3)])
    assert call.replays == 7
