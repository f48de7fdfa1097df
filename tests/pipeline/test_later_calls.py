"""What is tried of later calls finds a function that is right in its first call alone."""

from __future__ import annotations

import pytest
import torch

from bench.later_calls import LYING, Tried
from bench.patterns import Case, Input

CPU = torch.device("cpu")
WAYS = (*LYING, "sized")
SUMS = Case("sums", lambda x: (x.softmax(-1), x.sum(0)), (Input((12, 20)),), ())


def test_later_calls_are_compared_in_every_way() -> None:
    tried = Tried(SUMS, CPU)
    tried.run(WAYS)
    assert tried.problems == []
    # The first call twice, each way once, and four other sizes.
    assert tried.calls == 2 + len(LYING) + 4


@pytest.mark.parametrize("way", ["shifted", "padded", "swapped"])
def test_a_function_that_goes_by_the_first_calls_layout_is_found(way: str) -> None:
    tried = Tried(SUMS, CPU)
    tried.ours = lambda x: SUMS.function(x.as_strided(x.shape, (20, 1), 0))
    tried.run([way])
    assert [problem.partition(":")[0] for problem in tried.problems] == [way]


def test_a_result_that_a_later_call_overwrites_is_found() -> None:
    tried, held = Tried(SUMS, CPU), torch.empty(12, 20)
    tried.ours = lambda x: (held.copy_(x.softmax(-1)), x.sum(0))
    tried.run(["shifted"])
    assert [problem.partition(":")[0] for problem in tried.problems] == ["first, after all others"]
