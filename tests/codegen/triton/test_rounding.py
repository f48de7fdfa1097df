"""Triton rounds each sum, product, quotient and square root of float32, as eager mode's kernels do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.compile_program import compile_program, compiled_for_gpus

PROGRAMS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "a product and a sum": (lambda a, b: a * b + a, "add"),
    "a product less the smallest one": (lambda a, b: (a * b - (a * b).amin(-1, keepdim=True)).sqrt(), "sub"),
    "a quotient": (lambda a, b: a / b, "div.rn"),
    "a quotient by a number": (lambda a, b: a / 3 + b, "add"),
    "a reciprocal": (lambda a, b: a.reciprocal(), "div.rn"),
    "a square root": (lambda a, b: a.sqrt(), "sqrt.rn"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_contracted_or_approximated(name: str, dtype: torch.dtype) -> None:
    function, instruction = PROGRAMS[name]
    a, b = torch.ones(2, 64, 100, dtype=dtype)
    (result,) = compiled_for_gpus(compile_program(function, a, b))
    assert result.ptx is not None
    operations = [line.split()[0] for line in result.ptx.splitlines() if ".f32" in line]
    assert any(operation.startswith(instruction) for operation in operations)
    assert not [o for o in operations if o.startswith(("fma", "div.full", "div.approx", "sqrt.approx"))]


def test_an_approximation_that_gains_by_it_has_fused_multiply_adds() -> None:
    """The error function for results in half types."""
    (result,) = compiled_for_gpus(compile_program(torch.nn.functional.gelu, torch.ones(64, 100, dtype=torch.bfloat16)))
    assert result.ptx is not None and "fma.rn.f32" in result.ptx
