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
    "a quotient": (lambda a, b: (a / b).float(), "rcp.approx"),
    "a quotient less than one": (lambda a, b: 1 - a / b, "rcp.approx"),
    "a whole part of a quotient": (lambda a, b: (a / b).floor(), "rcp.approx"),
    "a quotient that is compared": (lambda a, b: torch.where(a / b > 1, a, b), "rcp.approx"),
    "a quotient that is summed": (lambda a, b: (a / b).sum(-1), "rcp.approx"),
    "a quotient by a number": (lambda a, b: a / 3 + b, "add"),
    "a reciprocal": (lambda a, b: a.reciprocal().float(), "rcp.approx"),
    "a square root": (lambda a, b: a.sqrt(), "rsqrt.approx"),
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
    assert not [o for o in operations if o.startswith("div")]
    # Two correct the reciprocal of a quotient, two the quotient, and two a root.
    corrected = 4 * operations.count("rcp.approx.ftz.f32") + 2 * operations.count("rsqrt.approx.ftz.f32")
    assert operations.count("fma.rn.f32") == corrected


@pytest.mark.parametrize(
    "function",
    [lambda a, b: a / b, lambda a, b: b * a.reciprocal(), lambda a, b: (a / b).sqrt(), lambda a, b: a.softmax(-1)],
)
def test_a_quotient_that_only_half_types_see_is_quick(function: Callable[..., Tensor]) -> None:
    operations = float32_operations(function, torch.bfloat16)
    assert "div.full.f32" in operations and "rcp.approx.ftz.f32" not in operations
    assert "div.full.f32" not in float32_operations(function, torch.float32)


def test_one_reciprocal_serves_a_row() -> None:
    operations = float32_operations(lambda a, b: a / b.sum(-1, keepdim=True), torch.float32)
    assert operations.count("rcp.approx.ftz.f32") == 1 and operations.count("fma.rn.f32") > 2


NUMBERS = [0.0, 1.0, 3.0, 1e-38, 2.0**-149, 2.0**-101, 2.0**101, 3e38, torch.inf, torch.nan]


def interpreted_quotients(x: Tensor, y: Tensor) -> Tensor:
    compilation = compile_program(lambda x, y: x / y, x, y)
    assert any("divide(x, y)" in kernel.source for kernel in compilation.triton.values())
    (result,) = call_interpreted(compilation, [x, y])
    return result


def test_a_divisor_may_be_any_number() -> None:
    """Zeros keep their signs, and infinities, NaN, the smallest and the largest numbers are right."""
    numbers = torch.tensor([*NUMBERS, *(-number for number in NUMBERS)])
    x, y = numbers.expand(len(numbers), -1).contiguous(), numbers[:, None].clone()
    for divisor in (y, y.expand_as(x).contiguous()):
        result, wanted = interpreted_quotients(x, divisor), x / y
        torch.testing.assert_close(result, wanted, rtol=2.0**-23, atol=2.0**-148, equal_nan=True)
        assert torch.equal(result.signbit() | wanted.isnan(), wanted.signbit() | wanted.isnan())


def test_a_quotient_is_rounded_once() -> None:
    """Of numbers of any size, and of ones whose quotient is near the middle between two numbers."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (2, 1 << 17), generator=generator)
    x, y = bits.to(torch.int32).view(torch.float32)
    middle = (torch.rand(len(y), generator=generator) + 1).double() + 2.0**-24
    y = torch.where(torch.arange(len(y)) % 2 == 0, y, y.abs().clamp(2.0**-90, 2.0**90))
    x = torch.where(torch.arange(len(y)) % 2 == 0, x, (middle * y).float())
    result, wanted = interpreted_quotients(x, y), x / y
    is_same = (result == wanted) | (result.isnan() & wanted.isnan())
    is_exempt = (x.abs() < 2.0**-102) | (wanted.abs() < 2.0**-125)
    assert (is_same | is_exempt).all() and is_exempt.sum() < len(x) / 8
    torch.testing.assert_close(result, wanted, rtol=2.0**-23, atol=2.0**-148, equal_nan=True)


def test_a_square_root_is_rounded_once() -> None:
    bits = torch.randint(-(2**31), 2**31, (1 << 17,), generator=torch.Generator().manual_seed(0))
    x = torch.cat([bits.to(torch.int32).view(torch.float32), torch.tensor([*NUMBERS, -0.0, -torch.inf, 3.4028235e38])])
    compilation = compile_program(torch.sqrt, x)
    assert any("square_root(x)" in kernel.source for kernel in compilation.triton.values())
    (result,) = call_interpreted(compilation, [x])
    wanted = x.double().sqrt().float()
    assert ((result.view(torch.int32) == wanted.view(torch.int32)) | (result.isnan() & wanted.isnan())).all()


def test_an_approximation_that_gains_by_it_has_fused_multiply_adds() -> None:
    """The error function for results in half types."""
    (result,) = compiled_for_gpus(compile_program(torch.nn.functional.gelu, torch.ones(64, 100, dtype=torch.bfloat16)))
    assert result.ptx is not None and "fma.rn.f32" in result.ptx
