"""Kernels of matrix products, and the library's own epilogues, on a GPU: as near to float64 as eager mode is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.runtime.checking.verify import relative_error
from compiler.schedule.group import Group
from compiler.schedule.products.loops import Product
from tests.codegen.triton.test_products import CASES, Case, flat, rnd

pytestmark = pytest.mark.gpu
Tensor = torch.Tensor
HALF = torch.bfloat16
WEIGHTS = (rnd(1024, 512, dtype=HALF), rnd(1024, dtype=HALF))


def by_tanh(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b), approximate="tanh")


#: Every tile of half types is the best one for some number of rows.
SIZES = [
    Case(f"{rows} rows", lambda x, w, b: F.silu(F.linear(x, w, b)) * 2, (rnd(rows, 512, dtype=HALF), *WEIGHTS))
    for rows in (1, 17, 64, 200, 1000, 4096, 20000)
]
BY_LIBRARY = [
    Case("ReLU", lambda x, w, b: torch.relu(F.linear(x, w, b)), (rnd(4096, 512, dtype=HALF), *WEIGHTS)),
    Case("GELU by tanh", by_tanh, (rnd(4096, 512, dtype=HALF), *WEIGHTS)),
]


def compiled_on_gpu(case: Case, **options: Any) -> Built:
    """Checks the case's results, and gives what was made of it."""
    inputs = [tensor.cuda() for tensor in case.inputs]
    exact = flat(case.function(*(tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs)))
    eager = flat(case.function(*inputs))
    torch._dynamo.reset()
    made: list[Built] = []
    function: Callable[..., Any] = torch.compile(case.function, backend=fusionscope, options=options, dynamic=False)
    with torch.no_grad(), observed_compilations(made.append):
        results = flat(function(*inputs))
    epsilon = max(torch.finfo(tensor.dtype).eps for tensor in inputs if tensor.is_floating_point())
    assert relative_error(results, exact) <= 3 * relative_error(eager, exact) + epsilon
    (compilation,) = made
    return compilation


@pytest.mark.parametrize("case", [*CASES, *SIZES], ids=lambda case: case.name)
def test_a_product_with_what_joins_it_is_right(case: Case) -> None:
    compilation = compiled_on_gpu(case)
    assert case in SIZES or any(isinstance(group, Product) for group in compilation.groups)


@pytest.mark.parametrize("case", BY_LIBRARY, ids=lambda case: case.name)
def test_the_librarys_epilogue_is_right(case: Case) -> None:
    compilation = compiled_on_gpu(case)
    (unit,) = compilation.schedule.units
    assert not isinstance(unit, Group) and unit.covers
