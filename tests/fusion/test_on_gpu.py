"""Kernels whose programs meet: sums across rows, teams and batches, on a GPU, where programs do run at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.backend import fusionscope
from compiler.runtime.checking.verify import relative_error
from tests.fusion.test_across import CASES, Case, as_list, in_double
from tests.fusion.test_batch import CASES as BATCHES
from tests.fusion.test_cooperative import CASES as TEAMS

pytestmark = pytest.mark.gpu


@dataclass(frozen=True)
class Large:
    """A case whose inputs are made when they are asked for: together they are 1.6 GB, which each process of a test run
    without a GPU would make and keep."""

    name: str
    function: Callable[..., Any]
    make: Callable[[], tuple[torch.Tensor, ...]]

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        return self.make()


def large(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


#: Enough rows for many teams of programs.
LARGE = [
    Large("sums over two axes of many rows", lambda x: (x.sum(0), x.sum(1)), lambda: (large(40000, 1024),)),
    Large("slices of long rows", lambda x: (x.sum(0), x.sum(1), x.exp().amax(1)), lambda: (large(5001, 9000),)),
    Large("few long rows", lambda x: (x.amax(0), x.sum(1)), lambda: (large(300, 8192),)),
    Large("many short rows", lambda x: (x.sum(0), x.exp().sum(1), x.sum()), lambda: (large(500000, 24),)),
    Large("cross entropy of a vocabulary", lambda x, i: F.cross_entropy(x, i),
          lambda: (large(2048, 32000), torch.randint(0, 32000, (2048,)))),
]  # fmt: skip


#: More teams than the device holds at one time, a team as large as it may be, and rows that end within a part.
MANY_TEAMS = [
    Large("softmax of long rows", lambda x: torch.softmax(x, -1), lambda: (large(2000, 100003),)),
    Large("one row", lambda x: torch.softmax(x, -1), lambda: (large(1, 1_000_003),)),
    Large("columns", lambda x: torch.softmax(x, 0), lambda: (large(20011, 1000),)),
    Large("batch norm in training", lambda x: F.batch_norm(x, None, None, None, None, True),
          lambda: (large(64, 64, 56, 56),)),
    Large("smoothed cross entropy", lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1, reduction="none"),
          lambda: (large(2000, 100003), torch.randint(0, 100003, (2000,)))),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", [*(Case(name, *case) for name, case in TEAMS.items()), *MANY_TEAMS], ids=lambda case: case.name
)
def test_teams_are_as_good_as_eager_every_time(case: Case | Large) -> None:
    torch._dynamo.reset()
    inputs = [x.cuda() for x in case.inputs]
    exact, eager = as_list(case.function(*in_double(tuple(inputs)))), as_list(case.function(*inputs))
    compiled = torch.compile(case.function, backend=fusionscope)
    first = as_list(compiled(*inputs))
    assert relative_error(first, exact) <= 3 * relative_error(eager, exact) + 64 * torch.finfo(torch.float32).eps
    for _ in range(20):
        assert all(torch.equal(one, two) for one, two in zip(first, as_list(compiled(*inputs)), strict=True))


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("length", [65536, 131072, 100003])
def test_programs_that_start_together_do_so_in_a_graph_and_from_any_address(start: int, length: int) -> None:
    torch._dynamo.reset()
    x = large(200 * length + 1).cuda()[start:][: 200 * length].view(200, length)
    compiled = torch.compile(lambda x: torch.softmax(x, -1), backend=fusionscope)
    wanted = torch.softmax(x.double(), -1)
    assert relative_error([compiled(x)], [wanted]) < 1e-6
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x)
    for _ in range(3):
        result.zero_()
        graph.replay()
        assert relative_error([result], [wanted]) < 1e-6


@pytest.mark.parametrize("case", [*CASES, *LARGE], ids=lambda case: case.name)
def test_sums_across_rows_are_as_good_as_eager(case: Case | Large) -> None:
    inputs = [x.cuda() for x in case.inputs]
    exact, eager = as_list(case.function(*in_double(tuple(inputs)))), as_list(case.function(*inputs))
    first = results_of(case.function, inputs)
    assert relative_error(first, exact) <= 3 * relative_error(eager, exact) + 8 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_every_launch_gives_the_same_bits(case: Large) -> None:
    torch._dynamo.reset()
    inputs = [x.cuda() for x in case.inputs]
    compiled = torch.compile(case.function, backend=fusionscope)
    first = as_list(compiled(*inputs))
    for _ in range(20):
        assert all(torch.equal(one, two) for one, two in zip(first, as_list(compiled(*inputs)), strict=True))


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str) -> None:
    function, inputs = BATCHES[name]
    on_gpu = [x.cuda() for x in inputs]
    for result, want in zip(results_of(function, on_gpu), function(*on_gpu), strict=True):
        torch.testing.assert_close(result, want, rtol=1e-5, atol=1e-5)


def results_of(function: Callable[..., Any], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    torch._dynamo.reset()
    return as_list(torch.compile(function, backend=fusionscope)(*inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_divides_itself_is_one_before_the_fraction_is_cut_off(dtype: torch.dtype) -> None:
    """A division that is off by a rounding would leave zero."""
    torch._dynamo.reset()
    x = torch.cat([torch.randn(4096, device="cuda") * 10, torch.tensor([-6.875, 3.0, 49.0], device="cuda")]).to(dtype)
    x = torch.where(x == 0, 1, x)
    divide = torch.compile(lambda a, b: torch.div(a, b, rounding_mode="trunc"), backend=fusionscope)
    assert divide(x, x.clone()).eq(1).all()
