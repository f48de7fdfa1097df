"""The search takes the best candidate first, scores what a fusion changed, and ends when nothing is left that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler.compile import Target, lower
from compiler.decisions import Refuse
from compiler.devices import device_for
from compiler.options import Options
from compiler.schedule import search
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Context, Fuse, can_fuse, shared_buffers
from compiler.schedule.scheduler import context_of
from compiler.schedule.units import UnitGraph
from tests.compile_program import capture_graph

Tensor = torch.Tensor


def small_and_large(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """The fusion of the large tensor pays far more than those of the small ones."""
    return (x.sin().cos().tanh(), y.sin().cos(), torch.softmax(z, -1).cumsum(-1))


def normed(x: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(torch.relu(x @ w), (w.shape[1],)) * 2 + x


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "small and large": (small_and_large, (torch.randn(8), torch.randn(2048, 2048), torch.randn(16, 64))),
    "normed": (normed, (torch.randn(64, 64), torch.randn(64, 64))),
}
every_program = pytest.mark.parametrize("name", PROGRAMS)


def searched(name: str) -> tuple[search.Search, dict[frozenset[str], int]]:
    """The search of a program, run to its end, and the round in which each pair was first asked about."""
    function, inputs = PROGRAMS[name]
    target = Target(torch.device("cpu"), device_for("sm_90"), Options(knobs={"disable": ["recompute"]}))
    compilation = lower(capture_graph(function, *inputs), target)
    context = context_of(UnitGraph(compilation.loops), compilation.model, compilation.options)
    found = search.Search(context)
    asked: dict[frozenset[str], int] = {}

    def remembering(a: int, b: int, context: Context) -> Fuse | Refuse:
        pair = context.graph.units[a].names | context.graph.units[b].names
        assert (a, b) not in seen, "a pair is scored once"
        seen.add((a, b))
        asked.setdefault(pair, found.turn)
        return can_fuse(a, b, context)

    seen: set[tuple[int, int]] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "can_fuse", remembering)
        found.run()
    return found, asked


def fusions(decisions: list[Decision]) -> list[Decision]:
    return [decision for decision in decisions if isinstance(decision.verdict, Fuse)]


@every_program
def test_a_round_takes_the_best_that_is_queued(name: str) -> None:
    found, asked = searched(name)
    taken = fusions(found.decisions)
    assert [decision.round for decision in taken] == list(range(1, len(taken) + 1))
    for place, decision in enumerate(taken):
        assert isinstance(decision.verdict, Fuse)
        for later in taken[place + 1 :]:
            # What was in the queue already and was left for later is no better.
            if asked[later.one.names | later.two.names] <= decision.round:
                assert isinstance(later.verdict, Fuse)
                assert later.verdict.score.rank <= decision.verdict.score.rank


@every_program
def test_nothing_is_left_that_may_and_should_fuse(name: str) -> None:
    found, _ = searched(name)
    graph = found.graph
    pairs = [(a, b) for a in graph.units for b in graph.units if a != b and not graph.must_precede(b, a)]
    sharing = [(a, b) for a, b in pairs if shared_buffers(graph.units[a], graph.units[b], graph.layouts)[0]]
    assert all(isinstance(can_fuse(a, b, found.context), Refuse) for a, b in sharing)


def test_the_large_tensor_comes_first() -> None:
    found, _ = searched("small and large")
    first = fusions(found.decisions)[0]
    assert {*first.one.names, *first.two.names} == {"sin_1", "cos_1"}
