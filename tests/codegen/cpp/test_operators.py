"""Every operator's loops through C++, compared with eager and with float64."""

from __future__ import annotations

import pytest
import torch

from tests.codegen.cpp.cases import CASES, Case
from tests.codegen.cpp.harness import Lowered, close, execute, launch_all, lowered

_PER_LIBRARY = 40


def _as_float64(tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [t.double() if t.is_floating_point() else t for t in tensors]


def check(case: Case, compiled: Lowered, launchers: dict) -> str:  # type: ignore[type-arg]
    arguments = case.arguments()
    wanted = case.function(*arguments)
    exact = case.function(*_as_float64(arguments))
    (result,) = execute(compiled, launchers, arguments)
    problem = close(result, wanted, exact, case.sums)
    return f"{case.name}: {problem}" if problem else ""


@pytest.mark.parametrize("first", range(0, len(CASES), _PER_LIBRARY))
def test_loops_give_what_eager_gives(first: int) -> None:
    cases = CASES[first : first + _PER_LIBRARY]
    compiled = [lowered(case.function, case.arguments()) for case in cases]
    launchers = launch_all(compiled)
    problems = [check(case, item, launchers) for case, item in zip(cases, compiled, strict=True)]
    assert not [p for p in problems if p], "\n".join(p for p in problems if p)
