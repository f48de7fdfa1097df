"""A refused pair is told what would have to change, and that change, made to the program, does fuse it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from compiler.options import Options
from compiler.pipeline import explore
from tests.compile_program import compile_program
from tests.schedule.test_decisions import presented
from tests.schedule.test_reasons import page_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class Case:
    """A program whose pair (a, b) is refused, and the program after the change that is proposed."""

    name: str
    refused: Callable[..., Any]
    changed: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    pair: tuple[str, str]
    reason: str
    would_fuse_if: str
    disable: tuple[str, ...] = ()


def sums(x: Tensor) -> Tensor:
    return x.sum(-1)


SQUARE, ROWS = torch.randn(16, 16, 32), torch.randn(64, 32)

CASES = [
    Case(
        "read backwards",
        lambda x: (lambda y: y * torch.flip(y, (0,)))(sums(x)),
        lambda x: (lambda y: y * y)(sums(x)),
        (ROWS,),
        ("sum_1", "mul"),
        "index.reversed",
        "`mul` read `sum_1` forwards, at x0 instead of -x0 + 63",
    ),
    Case(
        "transposed",
        lambda x: (lambda y: y + y.t())(sums(x)),
        lambda x: (lambda y: y + y)(sums(x)),
        (SQUARE,),
        ("sum_1", "add"),
        "index.transposed",
        "`add` read `sum_1` with its loops in another order, at 16 * x1 + x0 instead of 16 * x0 + x1",
    ),
    Case(
        "another axis",
        lambda x: (x.sum(0), x.sum(1)),
        lambda x: (x.sum(0), x.sum(0) * 2),
        (ROWS,),
        ("sum_1", "sum_2"),
        "shape.reduction_axes",
        "the reduction of `sum_2` ran along dimension 0 of `x`, as `sum_1` does",
        disable=("across", "batch"),
    ),
    Case(
        "a part of the iterations",
        lambda x: (lambda y: (y, y[:32] * 2))(sums(x)),
        lambda x: (lambda y: (y, y * 2))(sums(x)),
        (ROWS,),
        ("sum_1", "mul"),
        "shape.numel",
        "the outer loop of `mul` ran 64 times instead of 32",
    ),
    Case(
        "one of the iterations",
        lambda x, w: (lambda y: (y, w * y))(sums(x)),
        lambda x, w: (lambda y: (y, w[0] * y))(sums(x)),
        (ROWS, torch.randn(8, 64)),
        ("sum_1", "mul"),
        "shape.numel",
        "the outer loop of `mul` ran once instead of 8 times",
    ),
    Case(
        "neighbours",
        lambda x: (lambda y: y[1:] - y[:-1])(sums(x)),
        lambda x: (lambda y: y - y)(sums(x)),
        (ROWS,),
        ("sum_1", "sub"),
        "shape.numel",
        "the outer loop of `sub` ran 64 times instead of 63 and read from the first element on",
    ),
    Case(
        "a library call between",
        lambda x, w: (lambda y: (y @ w) + y)(torch.sin(x)),
        lambda x, w: (lambda y: w + y)(torch.sin(x)),
        (torch.randn(32, 32), torch.randn(32, 32)),
        ("sin", "add"),
        "dependency.intermediate",
        "`mm` did not need to run between the two",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_would_have_to_change_is_told(case: Case) -> None:
    graph = presented(compile_program(case.refused, *case.inputs, disable=case.disable))
    found = [d for d in graph.decisions if d.would_fuse_if and d.verdict == "refused"]
    assert (case.reason, case.would_fuse_if) in {(d.reason, d.would_fuse_if) for d in found}
    assert case.pair in {(d.a, d.b) for d in found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_change_makes_one_kernel_fewer(case: Case) -> None:
    def generated(function: Callable[..., Any]) -> int:
        return len(compile_program(function, *case.inputs, disable=("batch", *case.disable)).groups)

    assert generated(case.changed) < generated(case.refused)


@pytest.mark.parametrize(
    ("knobs", "reason", "would_fuse_if"),
    [
        ({"disable": ["vertical"]}, "policy.disabled", "the rule vertical were not turned off"),
        ({"most_nodes": 2}, "policy.group_size", "the largest group had 3 nodes"),
    ],
)
def test_a_knob_in_the_way_is_named(knobs: dict[str, Any], reason: str, would_fuse_if: str) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.relu(torch.sin(x) * torch.cos(x).sum(-1, keepdim=True))

    decisions = presented(compile_program(function, ROWS, **knobs)).decisions
    assert (reason, would_fuse_if) in {(d.reason, d.would_fuse_if) for d in decisions}


def test_nothing_is_told_where_nothing_helps() -> None:
    def function(x: Tensor, rows: Tensor) -> Tensor:
        return torch.relu(torch.zeros(64, 32).index_add(0, rows, x))

    decisions = presented(compile_program(function, torch.randn(48, 32), torch.randint(0, 64, (48,)))).decisions
    assert {d.would_fuse_if for d in decisions if d.reason in ("dependency.scatter", "dependency.mutation")} == {""}


#: Reasons whose page has an example for which a change is found.
ON_THEIR_PAGES = {
    "profit.registers": r"a row had at most [\d,]+ elements instead of 9,000: its sums would fit into registers",
    "profit.long_reduction": r"the kernel of `\w+` moved less than [\d,]+ bytes instead of [\d,]+",
    "profit.kept_longer": r"what `full` makes took at most 1,048,576 bytes more at a time, not [\d,]+",
    "kind.other_stream": "the program put both on one stream",
    "policy.outscored": r"`force` named \w+ and \w+: then they come first",
}


@pytest.mark.parametrize("reason", ON_THEIR_PAGES)
def test_what_would_have_to_change_for_the_example_of_a_page(reason: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", page_of(reason), re.DOTALL)
    report = explore(code, Options(device="cpu", target="sm_90", produce=("capture", "lower", "schedule")))
    told = {d.would_fuse_if for graph in report.graphs for d in graph.decisions if d.reason == reason}
    assert any(re.fullmatch(ON_THEIR_PAGES[reason], sentence) for sentence in told), told


def test_a_launch_that_is_full_says_what_it_would_have_to_hold() -> None:
    inputs = [torch.randn(10 + place) for place in range(18)]
    decisions = presented(compile_program(lambda *tensors: tuple(x.sin() for x in tensors), *inputs)).decisions
    told = {d.would_fuse_if for d in decisions if d.reason == "policy.batch_size"}
    assert "one launch might hold 17 kernels with 34 buffers" in told


def test_a_reader_at_loaded_places_beside_others_has_its_decisions() -> None:
    """The place is known from its load on: the other read, which comes first, cannot be at it."""
    source = """import torch
@torch.compile
def f(x, y):
    row = (y > 0).long().sum(1)
    chances = torch.softmax(x, 1)
    return chances + chances[row]
f(torch.randn(64, 64), torch.randn(64, 64))
"""
    report = explore(source, Options(device="cpu", target="sm_90", produce=("capture", "lower", "schedule")))
    assert report.error is None
    assert any(decision.verdict == "refused" for decision in report.graphs[0].decisions)


def test_a_change_that_only_some_sizes_allow_is_not_proposed() -> None:
    """Whether the other order stays inside of memory depends on the rows, and to ask for that ended the stage."""
    report = explore(
        "import torch\n@torch.compile\ndef f(x):\n    x[x > 1.5] *= -1\n    x[0].sigmoid_()\n"
        "    x[1:3, 1:3] = torch.arange(4.0).view(2, 2)\n    x.T[3] -= 1\n"
        "    y = x[1:]\n    y[:-1] = x[2:].clone()\n    return x.sum(), y\n"
        "for rows in (5, 8):\n    f(torch.randn(rows, 6))\n",
        Options(device="cpu", produce=("capture", "lower", "schedule")),
    )
    assert report.error is None
    assert any(graph.decisions for graph in report.graphs)
