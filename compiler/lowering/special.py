"""Special functions: operators of one or two floats that are a named function of `compiler/functions`."""

from __future__ import annotations

from math import factorial, pi
from typing import Any

import torch

import compiler.functions  # noqa: F401  (which defines what is called here by name)
from compiler.ir.ops import ops
from compiler.lowering.builder import Builder
from compiler.lowering.pointwise import mul
from compiler.lowering.powers import pow_tensor
from compiler.lowering.promotion import Kind, dtypes_of, elementwise, lowers_elements
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, TensorValue

aten = torch.ops.aten

SAME = Kind.DEFAULT
FLOAT = Kind.INT_TO_FLOAT

#: The named function of each operator; integers become floats.
FUNCTION_OF = {
    "digamma": "psi",
    "erfinv": "inverse_erf",
    "i0": "bessel_i0",
    "igamma": "lower_gamma",
    "igammac": "upper_gamma",
    "special_airy_ai": "airy_ai",
    "special_bessel_j0": "bessel_j0",
    "special_bessel_j1": "bessel_j1",
    "special_bessel_y0": "bessel_y0",
    "special_bessel_y1": "bessel_y1",
    "special_chebyshev_polynomial_t": "chebyshev_t",
    "special_chebyshev_polynomial_u": "chebyshev_u",
    "special_chebyshev_polynomial_v": "chebyshev_v",
    "special_chebyshev_polynomial_w": "chebyshev_w",
    "special_erfcx": "scaled_erfc",
    "special_hermite_polynomial_h": "hermite_h",
    "special_hermite_polynomial_he": "hermite_he",
    "special_i0e": "scaled_bessel_i0",
    "special_i1": "bessel_i1",
    "special_i1e": "scaled_bessel_i1",
    "special_laguerre_polynomial_l": "laguerre_l",
    "special_legendre_polynomial_p": "legendre_p",
    "special_modified_bessel_i0": "bessel_i0",
    "special_modified_bessel_i1": "bessel_i1",
    "special_modified_bessel_k0": "bessel_k0",
    "special_modified_bessel_k1": "bessel_k1",
    "special_ndtri": "inverse_normal",
    "special_scaled_modified_bessel_k0": "scaled_bessel_k0",
    "special_scaled_modified_bessel_k1": "scaled_bessel_k1",
    "special_shifted_chebyshev_polynomial_t": "shifted_chebyshev_t",
    "special_shifted_chebyshev_polynomial_u": "shifted_chebyshev_u",
    "special_shifted_chebyshev_polynomial_v": "shifted_chebyshev_v",
    "special_shifted_chebyshev_polynomial_w": "shifted_chebyshev_w",
    "special_spherical_bessel_j0": "spherical_bessel_j0",
    "special_zeta": "hurwitz_zeta",
}


for _operator, _name in FUNCTION_OF.items():
    lowers_elements(FLOAT, getattr(ops, _name), getattr(aten, _operator))

lowers_elements(SAME, ops.greatest_common_divisor, aten.gcd)


@lowers(aten.polygamma)
def polygamma(build: Builder, n: int, x: TensorValue) -> TensorValue:
    """The derivative n of the digamma function: (-1)^(n + 1) n! zeta(n + 1, x)."""
    dtype = dtypes_of(FLOAT, x)[0]
    if n == 0:
        return elementwise(build, FLOAT, ops.psi, x)
    factor = float(factorial(n)) if n <= 170 else float("inf")

    def function(value: Any) -> Any:
        zeta = ops.hurwitz_zeta(ops.constant(n + 1, dtype), value)
        return zeta * (factor if n % 2 else -factor)

    return elementwise(build, FLOAT, function, x)


@lowers(aten.angle)
def angle(build: Builder, x: TensorValue) -> TensorValue:
    """Of real numbers: zero, or pi for a negative one."""
    dtype = dtypes_of(FLOAT, x)[0]

    def function(value: Any) -> Any:
        return ops.where(ops.isnan(value), value, ops.where(value < 0.0, ops.constant(pi, dtype), 0.0))

    return elementwise(build, FLOAT, function, x)


@lowers(aten.frexp)
def frexp(build: Builder, x: TensorValue) -> tuple[TensorValue, TensorValue]:
    mantissa = elementwise(build, SAME, ops.mantissa_of, x)
    exponent = elementwise(build, SAME, lambda value: ops.exponent_of(value).to(torch.int32), x, result=torch.int32)
    return mantissa, exponent


@lowers(aten.ldexp)
def ldexp(build: Builder, x: TensorValue, exponent: TensorValue) -> TensorValue:
    """x * 2^exponent. A float beside an integer is scaled in steps that do not overflow before the result does;
    otherwise it is a product with a power that has a dtype of its own, as in ATen."""
    if not x.dtype.is_floating_point or exponent.dtype.is_floating_point or exponent.dtype == torch.bool:
        return mul(build, x, pow_tensor(build, 2.0, exponent))
    # Versions of PyTorch differ in the dtype of a half number's result.
    wanted = None if build.node is None else build.node.meta["val"].dtype
    return elementwise(build, FLOAT, ops.scaled_by_power_of_two, x, exponent, result=wanted)


@lowers(aten.nextafter)
def nextafter(build: Builder, x: TensorValue, y: TensorValue) -> TensorValue:
    result = dtypes_of(SAME, x, y)[1]
    if result == torch.float16:
        raise CannotLower("it has no neighbours of float16 numbers")
    name = "next_after_in_bfloat16" if result == torch.bfloat16 else "next_after"
    return elementwise(build, SAME, getattr(ops, name), x, y)


@lowers(aten.lcm)
def lcm(build: Builder, x: TensorValue, y: TensorValue) -> TensorValue:
    # ATen takes the absolute value before it cuts the product off to a small type.
    wide = torch.int64 if dtypes_of(SAME, x, y)[0] == torch.int64 else torch.int32

    def function(a: Any, b: Any) -> Any:
        a, divisor, b = (v.to(wide) for v in (a, ops.greatest_common_divisor(a, b), b))
        is_zero = divisor == 0
        product = ops.truncdiv(a, ops.where(is_zero, 1, divisor)) * b
        return ops.where(is_zero, 0, ops.abs(product))

    return elementwise(build, SAME, function, x, y)
