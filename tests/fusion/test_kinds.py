"""Each kind of fusion has a program in the table that needs it, and the records of that program name its rule."""

from __future__ import annotations

import pytest
import torch

from bench.fusion.count import schedules_of
from bench.fusion.table import PROGRAMS
from compiler.schedule.rules import Fuse
from tests.compile_program import call_interpreted, compile_program, kernel_count

#: What is fused, a program of the table, and the rule.
KINDS = [
    ("a chain", "pointwise chain", "fused.vertical"),
    ("a diamond", "diamond", "fused.vertical"),
    ("a reduction, what broadcasts it, and a reduction of that", "layer norm", "fused.vertical"),
    ("readers of one tensor", "several outputs", "fused.horizontal"),
    ("sibling reductions", "max, mean and mean square", "fused.horizontal"),
    ("a tensor read both ways, in tiles of two dimensions", "a tensor and its transpose", "fused.horizontal"),
    ("loops indexed anew", "stack interleaved", "fused.inline"),
    ("the masked regions of a concatenation", "cat and pointwise", "fused.inline"),
    ("those of padding", "pad and pointwise", "fused.inline"),
    ("slices", "differences of neighbours", "fused.inline"),
    ("a producer in several consumers", "cross entropy, backward", "fused.recompute"),
    ("reductions along different axes", "sums over two axes", "fused.across"),
    ("a variance in a single pass", "variance of columns", "fused.single_pass"),
    ("a pointwise node after a product", "small linear with SiLU and residual", "fused.epilogue"),
    ("a pointwise node before a product", "scaled operand of a small product", "fused.prologue"),
    ("many tiny kernels", "small states", "fused.batch"),
]


@pytest.mark.parametrize(("kind", "program", "reason"), KINDS, ids=[kind for kind, _, _ in KINDS])
def test_a_kind_of_fusion_has_a_program_and_is_named_in_its_records(kind: str, program: str, reason: str) -> None:
    schedules = [compilation.schedule for compilation in schedules_of(PROGRAMS[program])]
    decisions = [decision for schedule in schedules for decision in schedule.decisions]
    assert reason in {decision.reason for decision in decisions if isinstance(decision.verdict, Fuse)}


def test_windows_that_overlap_are_read_once_for_two_results() -> None:
    """No index of an element tells in which window it is; both loops go through the windows alike all the same."""
    x = torch.randn(2, 3, 9, 9)
    compilation = compile_program(lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    assert kernel_count(compilation) == (1, 0)
    values, places = call_interpreted(compilation, [x])
    expected = torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert torch.equal(values, expected[0]) and torch.equal(places, expected[1])
