"""Every operator's loops through C++, compared with eager and with float64."""

from __future__ import annotations

import math

import pytest
import torch

from tests.codegen.cpp.cases import CASES, Case
from tests.codegen.cpp.harness import Lowered, close, execute, launch_all, lowered
from tests.compile_program import compile_program

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


def test_remainders_are_exact_whatever_the_quotient() -> None:
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (2, 3000), generator=generator).to(torch.int32)
    a, b = (torch.cat([row.view(torch.float32), torch.tensor([0.0, -7.5, math.inf, 3.0, 1e-45, -0.0])]) for row in bits)
    b[-6:] = torch.tensor([2.0, math.inf, 2.0, 0.0, 1e-38, -3.0])
    (found,) = compile_program(torch.fmod, a, b, target="cpu").build().call([a, b])
    is_number = torch.isfinite(a) & (b != 0) & ~b.isnan()
    pairs = zip(a.tolist(), b.tolist(), is_number.tolist(), strict=True)
    exact = torch.tensor([math.fmod(x, y) if known else math.nan for x, y, known in pairs])
    assert torch.equal(found.view(torch.int32)[is_number], exact.view(torch.int32)[is_number])
    assert found[~is_number].isnan().all()
