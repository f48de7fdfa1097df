"""Triton rounds each sum, product, quotient and square root of float32, as eager mode's kernels do.

Quotients that are rounded to a half type next are the exception: they are off by far less than that rounding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.compile_program import call_interpreted, compile_program, compiled_for_gpus

PROGRAMS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "a product and a sum": (lambda a, b: a * b + a, "add"),
    "a product less the smallest one": (lambda a, b: (a * b - (a * b).amin(-1, keepdim=True)).sqrt(), "sub"),
    "a quotient": (lambda a, b: (a / b).float(), "div.rn"),
    "a quotient less than one": (lambda a, b: 1 - a / b, "div.rn"),
    "a whole part of a quotient": (lambda a, b: (a / b).floor(), "div.rn"),
    "a quotient that is compared": (lambda a, b: torch.where(a / b > 1, a, b), "div.rn"),
    "a quotient that is summed": (lambda a, b: (a / b).sum(-1), "div.rn"),
    "a quotient by a number": (lambda a, b: a / 3 + b, "add"),
    "a reciprocal": (lambda a, b: a.reciprocal().float(), "div.rn"),
    "a square root": (lambda a, b: a.sqrt(), "sqrt.rn"),
}


def float32_operations(function: Callable[..., Tensor], dtype: torch.dtype) -> list[str]:
    (result,) = compiled_for_gpus(compile_program(function, *torch.ones(2, 64, 100, dtype=dtype)))
    return [line.split()[0] for line in result.ptx.splitlines() if ".f32" in line]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_contracted_or_approximated(name: str, dtype: torch.dtype) -> None:
    function, instruction = PROGRAMS[name]
    operations = float32_operations(function, dtype)
    assert any(operation.startswith(instruction) for operation in operations)
    assert not [o for o in operations if o.startswith(("fma", "div.full", "div.approx"))]


@pytest.mark.parametrize(
    "function",
    [lambda a, b: a / b, lambda a, b: b * a.reciprocal(), lambda a, b: (a / b).sqrt(), lambda a, b: a.softmax(-1)],
)
def test_a_quotient_that_only_half_types_see_is_quick(function: Callable[..., Tensor]) -> None:
    operations = float32_operations(function, torch.bfloat16)
    assert "div.full.f32" in operations and "div.rn.f32" not in operations
    assert "div.full.f32" not in float32_operations(function, torch.float32)


def test_one_reciprocal_serves_a_row() -> None:
    """And each element takes no quotient of its own, whose slow way zeros would take."""
    operations = float32_operations(lambda a, b: a / b.sum(-1, keepdim=True), torch.float32)
    assert operations.count("div.rn.f32") == 1 and "fma.rn.f32" in operations


def test_a_shared_divisor_may_be_any_number() -> None:
    """Zeros keep their signs, and infinities, NaN, the smallest and the largest numbers are right. The interpreter
    rounds twice where a GPU's fused multiply-add rounds once."""
    numbers = torch.tensor([0.0, 1.0, 3.0, 1e-38, 2.0**-149, 2.0**-101, 2.0**101, 3e38, torch.inf, torch.nan])
    numbers = torch.cat([numbers, -numbers])
    x, y = numbers.expand(len(numbers), -1).contiguous(), numbers[:, None].clone()
    compilation = compile_program(lambda x, y: (x / y, x.abs().amin(-1)), x, y)
    assert any("divide_by_shared(x" in kernel.source for kernel in compilation.triton.values())
    result, _ = call_interpreted(compilation, [x, y])
    wanted = x / y
    torch.testing.assert_close(result, wanted, rtol=2.0**-21, atol=2.0**-149, equal_nan=True)
    assert torch.equal(result.signbit() | wanted.isnan(), wanted.signbit() | wanted.isnan())


def test_an_approximation_that_gains_by_it_has_fused_multiply_adds() -> None:
    """The error function for results in half types."""
    (result,) = compiled_for_gpus(compile_program(torch.nn.functional.gelu, torch.ones(64, 100, dtype=torch.bfloat16)))
    assert result.ptx is not None and "fma.rn.f32" in result.ptx
