"""Gradients of running products in linear instead of quadratic time.

Let x be zero first at position k of a row, y its running product and g the gradient of y. Then the gradient of x is

    at i < k:    sum over i <= j < k of (g[j] * y[j]) / x[i]
    at k:        y[k - 1] * sum over j >= k of g[j] * (product of x between k and j)
    after k:     0

In graphs, torch 2.11 has a dozen operators for each element of a row: 5,823 kernels for 1,024 elements. Later releases
trace a formula of their own (`cumprod_backward` in torch/csrc/autograd/FunctionsManual.cpp), and keep it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from compiler.capture.torch_internals import autograd_kernels, is_transformed

aten = torch.ops.aten


class _RunningProduct(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, dim: int) -> torch.Tensor:
        y = aten.cumprod.default(x, dim)
        context.save_for_backward(x, y)
        context.dim = dim
        return y

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        x, y = context.saved_tensors
        return gradient_of_running_product(gradient, x, y, context.dim), None


def gradient_of_running_product(gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor, dim: int) -> torch.Tensor:
    """The gradient of x, of floats or complex numbers, from that of y, which is `x.cumprod(dim)`."""
    x, y = x.conj(), y.conj()
    is_zero = x == 0
    zeros = is_zero.cumsum(dim)
    is_before = zeros == 0
    is_within = zeros == 1  # from the first zero to the second
    is_first = is_zero & is_within
    terms = torch.where(is_before, gradient * y, 0)
    before = terms.flip(dim).cumsum(dim).flip(dim) / x
    between = torch.where(is_within & ~is_first, x, 1).cumprod(dim)
    after = torch.where(is_within, gradient * between, 0).sum(dim, keepdim=True)
    at_first = torch.where(is_before, x, 1).prod(dim, keepdim=True) * after
    return torch.where(is_first, at_first, torch.where(is_before, before, 0))


def _product(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    if is_transformed():  # within torch.func.grad no Function can be
        with autograd_kernels(dict.fromkeys(_PRODUCTS)):
            return aten.cumprod.default(x, dim, dtype=dtype)
    x = x if dtype is None else x.to(dtype)
    if torch.is_grad_enabled() and x.requires_grad:
        return _RunningProduct.apply(x, dim)
    with torch._C._AutoDispatchBelowAutograd():
        return aten.cumprod.default(x, dim)


def _product_in_place(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return x.copy_(_product(x.clone(), dim, dtype=dtype))


_PRODUCTS: dict[OpOverload, Callable[..., torch.Tensor]] = {
    aten.cumprod.default: _product,
    aten.cumprod_.default: _product_in_place,
}


def short_gradients_of_running_products() -> contextlib.AbstractContextManager[None]:
    """Have AOTAutograd trace the gradient above where torch has none that is as short."""
    if torch.__version__ >= (2, 12):  # type: ignore[operator]
        return contextlib.nullcontext()
    return autograd_kernels(_PRODUCTS)
