"""CUDA graphs on a GPU: what a caller of a compiled function sees is what eager mode gives, call for call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.replay.price import Times
from compiler.replay.replayed import ReplayedCall
from tests.replay.told_times import tell

pytestmark = pytest.mark.gpu

CALLS = 8


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def compiled(function: Callable[..., Any], choice: str = "on") -> tuple[Callable[..., Any], list[Built]]:
    """The function with CUDA graphs, and what was compiled of it."""
    seen: list[Built] = []
    ours = torch.compile(function, backend=fusionscope, options={"cuda_graphs": choice})

    def call(*args: Any) -> Any:
        with observed_compilations(seen.append):
            return ours(*args)

    return call, seen


def replayed(seen: list[Built]) -> ReplayedCall:
    """The call of the one graph."""
    (compilation,) = seen
    made = compilation.replayed
    assert isinstance(made, ReplayedCall), compilation.replay_decision
    return made


class Layers(nn.Module):
    """Products with kernels between them."""

    def __init__(self, width: int = 128, depth: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self.layers:
            x = self.dropout(self.norm(torch.relu(layer(x)))) + x
        return x, x.sum(0)


def same(ours: Any, eager: Any, atol: float = 1e-4) -> None:
    for mine, theirs in zip(ours, eager, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=atol)


def test_new_values_in_old_places_and_in_new_ones() -> None:
    model = Layers().cuda()
    call, seen = compiled(model)
    x, kept = torch.randn(32, 128, device="cuda"), []
    for _ in range(CALLS):
        x.normal_()
        kept.append((call(x), model(x)))
    assert replayed(seen).decision.verdict == "replayed", replayed(seen).decision
    alive = [torch.randn(32, 128, device="cuda") for _ in range(CALLS)]
    kept += [(call(x), model(x)) for x in alive]
    for ours, eager in kept:  # an output keeps its values however many calls follow
        same(ours, eager)
    assert replayed(seen).decision.verdict == "replayed" and replayed(seen).recordings <= 3


def test_parameters_may_change_in_place() -> None:
    model = Layers().cuda()
    first = model.layers[0]
    assert isinstance(first, nn.Linear)
    call, seen = compiled(model)
    x = torch.randn(32, 128, device="cuda")
    for _ in range(CALLS):
        first.weight.mul_(0.9)
        same(call(x), model(x))
    assert replayed(seen).decision.verdict == "replayed" and replayed(seen).recordings == 1


class Counting(nn.Module):
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(64)
        self.body = Layers(64)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.body(self.norm(x))[0] * self.count


def test_buffers_are_written_once_a_call() -> None:
    model, twin = Counting().cuda(), Counting().cuda()
    twin.load_state_dict(model.state_dict())
    call, seen = compiled(model)
    for step in range(1, CALLS + 1):
        x = torch.randn(32, 64, device="cuda")
        same([call(x)], [twin(x)])
        assert model.count.item() == step
        same([model.norm.running_mean, model.norm.running_var], [twin.norm.running_mean, twin.norm.running_var])
    assert replayed(seen).decision.verdict == "replayed", replayed(seen).decision


def test_dropout_differs_from_call_to_call_and_follows_the_seed() -> None:
    model = Layers(dropout=0.5).cuda()
    replays, seen = compiled(model)
    x = torch.randn(32, 128, device="cuda")
    torch.manual_seed(5)
    drawn = [replays(x)[0] for _ in range(CALLS)]
    assert replayed(seen).decision.verdict == "replayed", replayed(seen).decision
    assert all(not torch.equal(one, two) for one, two in pairwise(drawn))
    launches, _ = compiled(model, "off")
    torch.manual_seed(5)
    for one in drawn:  # the very numbers that launches one by one draw
        assert torch.equal(one, launches(x)[0])
    torch.manual_seed(5)
    again = replays(x)[0]
    torch.manual_seed(5)
    assert torch.equal(again, replays(x)[0])
    assert not torch.equal(again, replays(x)[0])


def test_two_functions_share_a_pool_in_any_order() -> None:
    models = [Layers(width, 5).cuda() for width in (64, 128)]
    calls = [compiled(model) for model in models]
    inputs = [torch.randn(16, width, device="cuda") for width in (64, 128)]
    kept: list[Any] = []
    for order in ((0, 1), (1, 0), (0, 0), (1, 1), (1, 0), (0, 1), (1, 0)):
        for n in order:
            inputs[n].normal_()
            kept.append((calls[n][0](inputs[n]), models[n](inputs[n])))
    for ours, eager in kept:
        same(ours, eager)
    assert all(replayed(seen).decision.verdict == "replayed" for _, seen in calls)


def test_other_streams() -> None:
    model = Layers().cuda()
    call, seen = compiled(model)
    x = torch.randn(32, 128, device="cuda")
    for _ in range(CALLS):
        call(x)
    assert replayed(seen).decision.verdict == "replayed"
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CALLS):
            x.normal_()
            same(call(x), model(x))
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # the caller's own recording
        ours = call(x)
    x.normal_()
    graph.replay()
    same(ours, model(x))
    same(call(x), model(x))


@pytest.mark.parametrize("calls", range(1, CALLS))
def test_the_caller_may_record_after_any_number_of_calls(calls: int) -> None:
    model = Layers().cuda()
    call, _ = compiled(model, "auto")
    x = torch.randn(32, 128, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(calls):
            call(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        ours = call(x)
    x.normal_()
    graph.replay()
    same(ours, model(x))


def test_memory_does_not_grow() -> None:
    model = Layers().cuda()
    call, seen = compiled(model)
    alive = [torch.randn(256, 128, device="cuda") for _ in range(4)]
    for step in range(3 * CALLS):
        call(alive[step % 4])
    torch.cuda.synchronize()
    reserved, allocated = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    for step in range(20 * CALLS):
        call(alive[step % 4])
    torch.cuda.synchronize()
    assert (torch.cuda.memory_reserved(), torch.cuda.memory_allocated()) == (reserved, allocated)
    assert replayed(seen).decision.verdict == "replayed"


def test_a_recording_keeps_no_tensor_of_the_caller() -> None:
    model = Layers().cuda()
    call, seen = compiled(model)
    x = torch.randn(32, 128, device="cuda")
    for _ in range(CALLS):
        call(x)
    assert replayed(seen).decision.verdict == "replayed"
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_what_fails_while_it_is_recorded_goes_on_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Layers(dropout=0.5).cuda()
    call, seen = compiled(model)
    x = torch.randn(32, 128, device="cuda")
    call(x)
    made = replayed(seen)
    launch = made._call

    def fails_in_a_recording(inputs: list[Any]) -> list[Any]:
        outputs = launch(inputs)
        if torch.cuda.is_current_stream_capturing():
            raise ValueError("this one does not like to be recorded")
        return outputs

    monkeypatch.setattr(made, "_call", fails_in_a_recording)
    drawn = [call(x)[0] for _ in range(CALLS)]
    assert made.decision.reason == "replay.failed" and "does not like" in made.decision.message
    assert not torch.equal(drawn[-1], drawn[-2])
    torch.rand(4, device="cuda")
    torch._dynamo.reset()  # else the second model is compiled with open sizes, which nothing records
    other, others = compiled(Layers(64).cuda())
    for _ in range(CALLS):
        other(torch.ones(8, 64, device="cuda"))
    assert replayed(others).decision.verdict == "replayed", replayed(others).decision


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (Times(host_us=900.0, elapsed_us=910.0), "replay.replayed"),
        (Times(host_us=200.0, elapsed_us=90_000.0), "replay.device_bound"),
    ],
    ids=["the device waits for the host", "the host waits for the device"],
)
def test_it_decides_by_what_it_has_measured(told: Times, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = tell(told, monkeypatch)
    model = Layers(64, 12).cuda()
    call, seen = compiled(model, "auto")
    x = torch.randn(8, 64, device="cuda")
    for _ in range(CALLS):
        same(call(x), model(x))
        torch.cuda.synchronize()
    decision = replayed(seen).decision
    assert (decision.reason, decision.numbers["host_us"]) == (reason, told.host_us), decision
    assert measured and all(times.host_us > 0 and times.elapsed_us > 0 for times in measured)


def test_halves_around_a_break_are_replayed_each() -> None:
    first, second = Layers(64).cuda(), Layers(64).cuda()

    def program(x: Tensor) -> Tensor:
        y, total = first(x)
        if total.sum() > 0:
            return second(y)[0]
        return second(-y)[0]

    call, seen = compiled(program)
    for step in range(2 * CALLS):
        x = torch.randn(8, 64, device="cuda") * (1 if step % 3 else -1)
        same([call(x)], [program(x)])
    assert any(isinstance(c.replayed, ReplayedCall) and c.replayed.decision.verdict == "replayed" for c in seen)


def test_training_steps() -> None:
    """What is saved for a backward graph is its own, also where another forward call comes between: the parameters are
    to the last bit those of launches one by one."""
    models = [Layers(64).cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    seen: list[Built] = []
    calls = [
        torch.compile(model, backend=fusionscope, options={"cuda_graphs": choice})
        for model, choice in zip(models, ("on", "off"), strict=True)
    ]
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    with torch.enable_grad(), observed_compilations(seen.append):
        for _ in range(CALLS):
            first, second = (torch.randn(16, 64, device="cuda") for _ in range(2))
            for function, optimiser in zip(calls, optimisers, strict=True):
                optimiser.zero_grad()
                one, two = function(first), function(second)
                (one[0].square().mean() + (two[1] * one[1]).mean()).backward()
                optimiser.step()
            for mine, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
                assert torch.equal(mine, theirs)
    reasons = [why.reason for compilation in seen if (why := compilation.replay_decision) is not None]
    assert sorted(reasons) == ["replay.asked_for"] * 2 + ["replay.off"] * 2, reasons


def test_open_sizes() -> None:
    model = Layers(64).cuda()
    seen: list[Built] = []
    call = torch.compile(model, backend=fusionscope, dynamic=True, options={"cuda_graphs": "on"})
    with observed_compilations(seen.append):
        for _ in range(CALLS):
            for rows in (3, 17, 8):
                x = torch.randn(rows, 64, device="cuda")
                same(call(x), model(x))
    (compilation,) = seen
    assert compilation.replay_decision is not None and compilation.replay_decision.reason == "replay.open_sizes"


SNIPPET = """
import torch

@torch.compile
def program(x):
    for _ in range(4):
        x = torch.softmax(x @ x, -1)
    return x

program(torch.randn(64, 64, device="cuda"))
"""


def test_a_report_lists_the_launches_and_says_that_they_are_replayed() -> None:
    report = explore(SNIPPET, Options(device="cuda", cuda_graphs="on", timing=Timing(min_runs=5)))
    assert report.error is None, report.error
    (graph,) = report.graphs
    assert len(graph.kernels) == 8
    told = graph.replay
    assert told is not None and (told.verdict, told.reason, told.option) == ("replayed", "replay.asked_for", "on"), told
    assert (told.launches, told.library_calls, told.recorded_launches) == (8, 4, 8)
    assert told.launched is not None and told.replayed is not None and told.replays > 3
    assert told.pool_bytes and told.copied_out_bytes == 64 * 64 * 4 and len(told.inputs) == 1
