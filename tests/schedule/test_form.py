"""Kernels that differ in names alone have one form, and what has one form costs the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.scheduling.programs import KINDS
from compiler.devices import H200
from compiler.ir.nodes import Layout
from compiler.lowering.lower import lower
from compiler.options import Options
from compiler.schedule import rules
from compiler.schedule.cost.kernel import group_cost
from compiler.schedule.form import form_of
from compiler.schedule.group import Group
from compiler.schedule.records.choices import Choice, observed_choices
from compiler.schedule.records.decisions import Decision
from compiler.schedule.rules import Fuse
from compiler.schedule.rules.alike import Pair, pair_of
from compiler.schedule.rules.verdicts import Context
from compiler.schedule.scheduler import schedule
from tests.compile_program import compile_program

#: So many blocks of each kind that some repeat others.
BLOCKS = {
    "transformer_training": 2, "residual_training": 2, "pointwise_chain": 8, "optimiser": 8, "concatenations": 2,
}  # fmt: skip


@pytest.mark.parametrize("kind", BLOCKS)
def test_all_that_a_search_weighs_costs_what_its_form_does(kind: str) -> None:
    graph = lower(KINDS[kind](BLOCKS[kind]).graph())
    choices: list[Choice] = []
    with observed_choices(choices.append):
        scheduled = schedule(graph, H200, Options())
    layouts = graph.buffers | scheduled.graph.buffers
    groups = {group for choice in choices for group in (*choice.apart, *choice.together)}
    by_form = defaultdict(list)
    for group in groups:
        # Parts of a concatenation that was not written part by part are buffers of no graph that is left.
        if layouts.keys() >= {*group.read_buffers, *group.stored}:
            by_form[form_of(group, layouts)[0]].append(group)
    assert any(len(alike) > 1 for alike in by_form.values())
    for alike in by_form.values():
        assert len({group_cost(group, layouts, H200) for group in alike}) == 1


@pytest.mark.parametrize("kind", BLOCKS)
def test_what_is_known_of_a_pair_is_what_rules_would_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair that differs from an earlier one in names alone gets the earlier one's verdict, with its own names."""
    graph = lower(KINDS[kind](BLOCKS[kind]).graph())
    contexts: list[Context] = []

    def noted(a: int, b: int, shared: Sequence[str], context: Context) -> Pair | None:
        contexts.append(context)
        return pair_of(a, b, shared, context)

    monkeypatch.setattr(rules, "pair_of", noted)
    found = schedule(graph, H200, Options())
    assert 0 < len(contexts[0].verdicts) < len(contexts)
    monkeypatch.setattr(rules, "pair_of", lambda *_: None)
    plain = schedule(graph, H200, Options())
    assert found.units == plain.units
    assert [told(decision) for decision in found.decisions] == [told(decision) for decision in plain.decisions]


def told(decision: Decision) -> tuple[Any, ...]:
    """All that a decision says of its pair."""
    verdict = decision.verdict
    made = (verdict.group, verdict.stored, verdict.score) if isinstance(verdict, Fuse) else None
    return decision.round, decision.a, decision.b, decision.reason, verdict.numbers, decision.needed, made


def layers(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The same twice over other tensors, with results that both must be stored."""
    return torch.softmax(x, -1) * 2, torch.softmax(y, -1) * 2


def groups_of(*inputs: Tensor) -> tuple[Group, Group, dict[str, Layout]]:
    compilation = compile_program(layers, *inputs)
    first, second = compilation.groups
    return first, second, compilation.schedule.graph.buffers


def test_two_layers_have_one_form() -> None:
    first, second, layouts = groups_of(torch.empty(64, 50000), torch.empty(64, 50000))
    assert form_of(first, layouts)[0] == form_of(second, layouts)[0]


@pytest.mark.parametrize(
    "other",
    [torch.empty(64, 50001), torch.empty(65, 50000), torch.empty(64, 50000, dtype=torch.bfloat16),
     torch.empty(128, 50000)[::2]],
    ids=["columns", "rows", "dtype", "strides"],
)  # fmt: skip
def test_layers_of_other_sizes_dtypes_or_strides_have_not(other: Tensor) -> None:
    first, second, layouts = groups_of(torch.empty(64, 50000), other)
    assert form_of(first, layouts)[0] != form_of(second, layouts)[0]


def test_another_way_to_run_it_is_another_form() -> None:
    group, _, layouts = groups_of(torch.empty(64, 50000), torch.empty(64, 50000))
    names = [member.name for member in group.members]
    strategies = [
        replace(group, stored=stored, single_pass=single, is_cooperative=is_cooperative)
        for stored in (group.stored, group.stored | {names[0]})
        for single in (frozenset[str](), frozenset(names[1:2]))
        for is_cooperative in (False, True)
    ]
    assert len({form_of(one, layouts)[0] for one in strategies}) == len(strategies)
