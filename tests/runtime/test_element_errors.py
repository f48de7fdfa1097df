"""Errors in units in the last place are those that arithmetic says by hand."""

from __future__ import annotations

import math

import pytest
import torch

from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.checking.element_errors import ElementErrors, ulp
from server.summary import markdown

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_unit_is_the_distance_to_the_next_larger_number(dtype: torch.dtype) -> None:
    values = torch.tensor([1.0, 1.5, 2.0, 3.9, 0.5, 1e-3, 96.0], dtype=dtype)
    above = torch.nextafter(values, torch.full_like(values, math.inf))
    assert torch.equal(ulp(values.double(), dtype), above.double() - values.double())


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_at_zero_and_among_denormals_it_is_the_smallest_number(dtype: torch.dtype) -> None:
    smallest = torch.nextafter(torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)).double()
    tiny = torch.finfo(dtype).tiny
    assert torch.equal(ulp(torch.tensor([0.0, tiny / 4, tiny]).double(), dtype), smallest.expand(3))


def test_largest_and_mean_over_several_chunks() -> None:
    errors = ElementErrors(torch.float32)
    eps = torch.finfo(torch.float32).eps
    errors.add(torch.tensor([1.0 + 3 * eps, 2.0]).double(), torch.tensor([1.0, 2.0]).double())
    errors.add(torch.tensor([4.0 - 4 * eps]).double(), torch.tensor([4.0]).double())
    assert (errors.elements, errors.largest_ulp, errors.mean_ulp) == (3, 3.0, (3 + 0 + 1) / 3)
    assert errors.largest == 4 * eps and errors.mean == pytest.approx(7 * eps / 3)


def test_a_report_tells_the_errors_of_each_output() -> None:
    source = "import torch\ndef f(x):\n    return x.exp().sum(-1), (x > 0)\nf(torch.randn(8, 64))\n"
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.error is None
    (one,) = report.graphs[0].errors  # a comparison rounds nothing
    assert (one.dtype, one.elements) == ("float32", 8)
    assert one.eager is not None and one.compiled is not None
    for errors in (one.eager, one.compiled):
        assert 0 < errors.mean <= errors.largest < 1e-3
        assert 0 < errors.mean_ulp <= errors.largest_ulp < 64
    assert f"| `{one.output}` | compiled |" in markdown(report)
