"""Training programs, each run three ways: eager, compiled by us, and eager in float64.

A program takes `compile_with`, which compiles a function or leaves it as it is, and `dtype`, in which it makes its
tensors from float32 numbers that are the same each time. It returns losses, gradients and parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

CompileWith = Callable[[Callable[..., Any]], Callable[..., Any]]
Program = Callable[[CompileWith, torch.dtype], Any]


def numbers(*shape: int, dtype: torch.dtype, trained: bool = False) -> torch.Tensor:
    return torch.randn(*shape).to(dtype).requires_grad_(trained)


def differentiate(loss: torch.Tensor) -> torch.Tensor:
    torch.autograd.backward(loss)
    return loss.detach()


def autocast_inside(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    """In float64 nothing is cast: autocast then has no place."""
    layer, x = nn.Linear(16, 8).to(dtype), numbers(4, 16, dtype=dtype, trained=True)

    def loss(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.float32):
            return F.gelu(layer(x)).to(dtype).sum()

    return differentiate(compile_with(loss)(x)), x.grad, layer.weight.grad, layer.bias.grad


def autocast_around(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    layer, x = nn.Linear(16, 8).to(dtype), numbers(4, 16, dtype=dtype, trained=True)
    loss = compile_with(lambda x: torch.tanh(layer(x)).to(dtype).sum())
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.float32):
        result = loss(x)
    return differentiate(result), x.grad, layer.weight.grad


def partly_without_gradients(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    x = numbers(8, 8, dtype=dtype, trained=True)

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        with torch.no_grad():
            scale = y.abs().max()
        return (y / scale).exp().sum()

    return differentiate(compile_with(loss)(x)), x.grad


def read_before_it_is_written(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    """A codebook that follows what is looked up in it: its rows must be those of before in the backward pass too."""
    codes, x = numbers(8, 4, dtype=dtype), numbers(20, 4, dtype=dtype, trained=True)

    def loss(x: torch.Tensor) -> torch.Tensor:
        row = codes.t()[:, x.argmax(1)].t()
        codes.mul_(0.5).add_(x.detach()[:8])
        return (row * x - row.square()).square().sum()

    compiled = compile_with(loss)
    return differentiate(compiled(x)), differentiate(compiled(x)), x.grad, codes


class SoftClip(torch.autograd.Function):
    """A clamp whose gradient leaks: autograd's own formula would give zero outside."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, limit: float) -> torch.Tensor:
        context.save_for_backward(x)
        context.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        (x,) = context.saved_tensors
        return torch.where(x.abs() <= context.limit, gradient, 0.1 * gradient), None


def custom_function(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    x = numbers(32, 16, dtype=dtype, trained=True)
    loss = compile_with(lambda x: (SoftClip.apply(x * 2, 1.0) ** 2).sum())
    return differentiate(loss(x)), x.grad


def checkpointed(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    layer, x = nn.Linear(8, 8).to(dtype), numbers(4, 8, dtype=dtype, trained=True)

    def inner(v: torch.Tensor) -> torch.Tensor:
        return torch.tanh(layer(v)).exp()

    loss = compile_with(lambda x: checkpoint(inner, x, use_reentrant=False).sum())
    return differentiate(loss(x)), x.grad, layer.weight.grad


def batch_norm(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    norm, x = nn.BatchNorm1d(8).to(dtype), numbers(16, 8, dtype=dtype, trained=True)
    loss = compile_with(lambda x: norm(x).relu().square().sum())
    return differentiate(loss(x)), x.grad, norm.weight.grad, norm.running_mean, norm.running_var


def two_results(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    """Only one result is differentiated: nothing flows back from the other."""
    x, w = (numbers(8, 8, dtype=dtype, trained=True) for _ in range(2))
    first, second = compile_with(lambda x, w: ((x @ w).relu(), x.softmax(-1)))(x, w)
    differentiate((second * second).sum())
    return first.detach(), second.detach(), x.grad


def classifier(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    """Snippet 08 without its dropout, which draws other numbers when compiled."""
    model = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 10)).to(dtype)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = compile_with(lambda x, y: F.cross_entropy(model(x), y))
    losses = []
    for _ in range(3):
        losses.append(differentiate(loss_of(numbers(32, 64, dtype=dtype), torch.randint(0, 10, (32,)))))
        optimiser.step()
        optimiser.zero_grad()
    return losses, [parameter.detach() for parameter in model.parameters()]


def optimised(kind: type[torch.optim.Optimizer], **settings: Any) -> Program:
    """Training whose optimiser's step is what is compiled."""

    def program(compile_with: CompileWith, dtype: torch.dtype) -> Any:
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)
        optimiser: Any = kind(model.parameters(), **settings)
        x = numbers(16, 8, dtype=dtype)
        step = compile_with(lambda: optimiser.step())
        for _ in range(3):
            differentiate(model(x).square().mean())
            step()
            optimiser.zero_grad()
        return [parameter.detach() for parameter in model.parameters()]

    return program


def whole_step(compile_with: CompileWith, dtype: torch.dtype) -> Any:
    """Forward, backward and update in one function: backward() breaks the graph, and all parts are compiled."""
    model = nn.Linear(8, 1).to(dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    x = numbers(16, 8, dtype=dtype)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad()
        return loss.detach()

    compiled = compile_with(step)
    return [compiled(x) for _ in range(3)], [parameter.detach() for parameter in model.parameters()]


PROGRAMS: dict[str, Program] = {
    "autocast_inside": autocast_inside,
    "autocast_around": autocast_around,
    "no_grad": partly_without_gradients,
    "custom_function": custom_function,
    "read before it is written": read_before_it_is_written,
    "checkpoint": checkpointed,
    "batch_norm": batch_norm,
    "two_results": two_results,
    "classifier": classifier,
    "whole_step": whole_step,
    "sgd": optimised(torch.optim.SGD, lr=0.1, foreach=False),
    "sgd_foreach": optimised(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    "sgd_fused": optimised(torch.optim.SGD, lr=0.1, momentum=0.9, fused=True),
    "adam": optimised(torch.optim.Adam, lr=0.01, foreach=False),
    "adam_foreach": optimised(torch.optim.Adam, lr=0.01, foreach=True),
    "adam_fused": optimised(torch.optim.Adam, lr=0.01, fused=True),
    "adamw_foreach": optimised(torch.optim.AdamW, lr=0.01, amsgrad=True, foreach=True),
    "adamw_fused": optimised(torch.optim.AdamW, lr=0.01, fused=True),
}
