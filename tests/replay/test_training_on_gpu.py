"""Training with CUDA graphs on a GPU: the ways of `ways_to_train.py`, with the option "on" and as a caller has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.replay.price import Times
from compiler.replay.replayed import WATCHED_CALLS, ReplayedCall
from tests.replay.told_times import tell
from tests.replay.ways_to_train import WAYS, Trained

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield


class OnGpu(Trained):
    def __init__(self) -> None:
        super().__init__("cuda")
        self.seen: list[Built] = []
        self.ours = torch.compile(self.model, backend=fusionscope, options={"cuda_graphs": "on"})

    def check(self) -> None:
        torch.cuda.synchronize()
        super().check()

    def _calls(self) -> list[ReplayedCall]:
        return [made.replayed for made in self.seen if isinstance(made.replayed, ReplayedCall)]

    def replays(self, phase: str) -> int:
        return sum(call.replays for call in self._calls() if call.phase == phase)

    def launched(self, phase: str) -> int:
        return sum(call.launched for call in self._calls() if call.phase == phase)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_training(way: Callable[[Trained], None]) -> None:
    trained = OnGpu()
    with observed_compilations(trained.seen.append):
        way(trained)


class Deep(nn.Module):
    """Small enough for the host to be what a step waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(12))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(self.dropout(layer(x))) + x
        return x.square().mean()


@pytest.mark.parametrize("choice", ["on", "auto"])
def test_steps_are_replayed_and_equal_launches_to_the_last_bit(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(Times(host_us=900.0, elapsed_us=910.0), monkeypatch)
    models = [Deep().cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    seen: list[Built] = []
    calls = [
        torch.compile(m, backend=fusionscope, options={"cuda_graphs": c})
        for m, c in zip(models, (choice, "off"), strict=True)
    ]
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    with observed_compilations(seen.append):
        for step in range(WATCHED_CALLS + 6):
            x = torch.randn(16, 64, device="cuda")
            for call, optimiser in zip(calls, optimisers, strict=True):
                torch.manual_seed(step)
                optimiser.zero_grad()
                call(x).backward()
                optimiser.step()
                torch.cuda.synchronize()
    for mine, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(mine, theirs)
    replayed = [made.replayed for made in seen if isinstance(made.replayed, ReplayedCall)]
    assert len(replayed) == 2 and all(call.replays for call in replayed), [call.decision for call in replayed]


def head_and_large_result(x: Tensor, weights: list[Tensor], last: Tensor) -> tuple[Tensor, Tensor]:
    for weight in weights:
        x = torch.relu(x @ weight) + x
    return x @ last, x.sum(0)


@torch.no_grad()
def test_results_are_the_callers_own() -> None:
    seen: list[Built] = []
    weights = [torch.randn(64, 64, device="cuda") / 8 for _ in range(8)]
    last = torch.randn(64, 2**17, device="cuda")
    call = torch.compile(head_and_large_result, backend=fusionscope, options={"cuda_graphs": "on"})
    kept = []
    with observed_compilations(seen.append):
        for _ in range(WATCHED_CALLS + 5):
            x = torch.randn(64, 64, device="cuda")
            kept.append((call(x, weights, last), head_and_large_result(x, weights, last)))
    (compilation,) = seen
    made = compilation.replayed
    assert isinstance(made, ReplayedCall) and made.replays == 5
    for ours, eager in kept:
        for mine, theirs in zip(ours, eager, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
