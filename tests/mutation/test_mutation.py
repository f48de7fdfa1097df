"""Writing to arguments and sharing memory: whatever a caller could tell apart is as in eager."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from compiler.compile import Built, observed_compilations
from tests.mutation.cases_inputs import GRADIENTS, INPUTS
from tests.mutation.cases_results import RESULTS
from tests.mutation.observe import Case, differences, observe


@pytest.fixture(autouse=True)
def gradient_mode() -> Iterator[None]:
    """A compilation that fails inside of `with torch.inference_mode()` leaves that on."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@pytest.mark.parametrize("case", [*INPUTS, *GRADIENTS, *RESULTS], ids=lambda case: case.name)
def test_a_caller_can_tell_no_difference(case: Case) -> None:
    eager = observe(case, lambda function: function)
    peer = observe(case, lambda function: torch.compile(function, backend="aot_eager", dynamic=False))
    compiled: list[Built] = []
    with observed_compilations(compiled.append):
        ours = observe(case, lambda function: torch.compile(function, backend="fusionscope", dynamic=False))
    assert bool(compiled) != case.left_to_eager
    found = differences(ours, eager, peer, case.like)
    known = differences(peer, eager, peer, case.like)
    assert not found, "\n".join([*found, "", "aot_eager:", *known])
