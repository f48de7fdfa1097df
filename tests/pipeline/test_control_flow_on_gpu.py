"""Operators that take functions, in graphs of a GPU: the same results as eager's there."""

from __future__ import annotations

import pytest
import torch

from compiler.backend import fusionscope
from tests.pipeline.test_control_flow import CASES, choice_in_choice, numbers

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CASES)
def test_gives_what_eager_gives(name: str) -> None:
    torch._dynamo.reset()
    function, inputs, _ = CASES[name]
    inputs = tuple(x.cuda() for x in inputs)
    torch.testing.assert_close(torch.compile(function, backend=fusionscope)(*inputs), function(*inputs))


def test_a_flag_on_the_cpu_chooses_among_graphs_of_the_gpu() -> None:
    torch._dynamo.reset()
    x, compiled = numbers(6, 5).cuda(), torch.compile(choice_in_choice, backend=fusionscope)
    for flag in (torch.tensor(True), torch.tensor(False)):
        torch.testing.assert_close(compiled(x, flag), choice_in_choice(x, flag))
