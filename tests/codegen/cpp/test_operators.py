"""Every operator's loops through C++, compared with eager and with float64, at each level of the machine's
instructions.

A result has the same bits at each level, but for what the C library computes: it has functions of its own for each.
"""

from __future__ import annotations

import math
import re

import pytest
import torch

from compiler.compile import build
from compiler.runtime.cpp.instruction_sets import SETTING, runnable
from tests.codegen.cpp.cases import CASES, Case
from tests.codegen.cpp.harness import Lowered, close, execute, launch_all, lowered
from tests.compile_program import compile_program

_PER_LIBRARY = 40
#: What `c_library.h` and the headers leave to the C library: of any type, and of doubles.
_OF_C = re.compile(r"fs::(tan|asin|acos|atan|sinh|cosh|asinh|acosh|atanh|erfc|atan2|hypot|pow)\(")
_OF_C_IN_DOUBLE = re.compile(r"fs::(exp|expm1|exp2|log|log2|log10|log1p|sigmoid|tanh|erf|sin|cos|lgamma|fmod)\(")


def _as_float64(tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [t.double() if t.is_floating_point() else t for t in tensors]


def is_of_c(compiled: Lowered) -> bool:
    sources = [kernel.source for kernel in compiled.kernels.values()]
    return any(_OF_C.search(text) or ("double" in text and _OF_C_IN_DOUBLE.search(text)) for text in sources)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor; any NaN is one NaN."""
    if tensor.is_floating_point():
        tensor = torch.where(tensor.isnan(), torch.nan, tensor)
    return tensor.contiguous().view(-1).view(torch.uint8)


def check(case: Case, compiled: Lowered, by_level: dict[str, dict]) -> list[str]:  # type: ignore[type-arg]
    arguments = case.arguments()
    wanted = case.function(*arguments)
    exact = case.function(*_as_float64(arguments))
    problems: list[str] = []
    first: torch.Tensor | None = None
    for level, launchers in by_level.items():
        (result,) = execute(compiled, launchers, arguments)
        if problem := close(result, wanted, exact, case.sums):
            problems.append(f"{case.name} at {level}: {problem}")
        first = result.clone() if first is None else first
        if not is_of_c(compiled) and not torch.equal(bits(result), bits(first)):
            problems.append(f"{case.name} at {level}: other bits than at {runnable()[0]}")
    return problems


@pytest.mark.parametrize("first", range(0, len(CASES), _PER_LIBRARY))
def test_loops_give_what_eager_gives_at_every_level(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = CASES[first : first + _PER_LIBRARY]
    compiled = [lowered(case.function, case.arguments()) for case in cases]
    by_level = {}
    for level in runnable():
        monkeypatch.setenv(SETTING, level)
        by_level[level] = launch_all(compiled)
    problems = [problem for case, item in zip(cases, compiled, strict=True) for problem in check(case, item, by_level)]
    assert not problems, "\n".join(problems)


def test_remainders_are_exact_whatever_the_quotient() -> None:
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (2, 3000), generator=generator).to(torch.int32)
    a, b = (torch.cat([row.view(torch.float32), torch.tensor([0.0, -7.5, math.inf, 3.0, 1e-45, -0.0])]) for row in bits)
    b[-6:] = torch.tensor([2.0, math.inf, 2.0, 0.0, 1e-38, -3.0])
    (found,) = build(compile_program(torch.fmod, a, b, target="cpu")).executable.call([a, b])
    is_number = torch.isfinite(a) & (b != 0) & ~b.isnan()
    pairs = zip(a.tolist(), b.tolist(), is_number.tolist(), strict=True)
    exact = torch.tensor([math.fmod(x, y) if known else math.nan for x, y, known in pairs])
    assert torch.equal(found.view(torch.int32)[is_number], exact.view(torch.int32)[is_number])
    assert found[~is_number].isnan().all()
