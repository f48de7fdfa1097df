"""Sizes that only a run tells, in graphs of a GPU: the results are eager's in every call."""

from __future__ import annotations

import pytest
import torch

from compiler.backend import fusionscope
from tests.pipeline.late_sizes import CASES, LINE, SETTINGS, sum_of_positives

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CASES)
def test_gives_what_eager_gives(name: str) -> None:
    torch._dynamo.reset()
    function, calls = CASES[name]
    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(function, backend=fusionscope, fullgraph=True)
        for call in calls:
            given = [x.cuda() for x in call]
            torch.testing.assert_close(compiled(*given), function(*given), equal_nan=True)


def test_gradients_are_eagers() -> None:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(sum_of_positives, backend=fusionscope, fullgraph=True)
        for shift in (0, -9):
            ours, eager = ((LINE + shift).cuda().requires_grad_() for _ in range(2))
            compiled(ours).backward()
            sum_of_positives(eager).backward()
            torch.testing.assert_close(ours.grad, eager.grad)
