"""Activations and gates."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(8192, 8192, dtype=BF16))
def clamped_gate_of_pairs(x: Tensor) -> Tensor:
    gate, up = x[..., ::2].clamp(max=7.0), x[..., 1::2].clamp(-7.0, 7.0)
    return gate * torch.sigmoid(gate * 1.702) * (up + 1)


@program(normal(4096, 11008 * 2, dtype=F16))
def gelu_gate_of_halves(x: Tensor) -> Tensor:
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate)


@program(normal(16, 128, 16384), normal(1, 128, 1))
def snake(x: Tensor, alpha: Tensor) -> Tensor:
    return x + torch.sin(alpha * x).square() / (alpha.abs() + 1e-2)


@program(normal(16384, 2048, dtype=BF16), normal(1), normal(2048), normal(2048))
def dynamic_tanh(x: Tensor, alpha: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (torch.tanh(alpha * x) * weight + bias).to(x.dtype)


@program(normal(32, 128, 56, 56), normal(128))
def prelu_of_channels(x: Tensor, slope: Tensor) -> Tensor:
    return F.prelu(x, slope)


@program(normal(1 << 24))
def mish(x: Tensor) -> Tensor:
    return x * torch.tanh(F.softplus(x))


@program(normal(1 << 24, dtype=F16))
def hard_swish(x: Tensor) -> Tensor:
    return x * F.relu6(x + 3) / 6


@program(normal(4096, 4096, 3))
def largest_of_three(x: Tensor) -> Tensor:
    return x.amax(-1)


@program(normal(8192, 4096, dtype=BF16), normal(4096, dtype=BF16))
def squared_relu_with_bias(x: Tensor, bias: Tensor) -> Tensor:
    return F.relu(x + bias).square()


@program(normal(1 << 22), normal(1 << 22), normal(1 << 22), normal(1 << 22), normal(1 << 22))
def cell_of_an_lstm(i: Tensor, f: Tensor, g: Tensor, o: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


@program(normal(8192, 1536), normal(8192, 1536), normal(8192, 512))
def cell_of_a_gru(of_input: Tensor, of_state: Tensor, state: Tensor) -> Tensor:
    reset_i, update_i, new_i = of_input.chunk(3, 1)
    reset_h, update_h, new_h = of_state.chunk(3, 1)
    update = torch.sigmoid(update_i + update_h)
    new = torch.tanh(new_i + torch.sigmoid(reset_i + reset_h) * new_h)
    return new + update * (state - new)


@program(normal(777, 333))
def selu_of_an_odd_matrix(x: Tensor) -> Tensor:
    return F.selu(x) + F.elu(-x, 0.5)


@program(normal(4096, 4096, dtype=BF16), normal(4096, 4096, dtype=BF16), normal(4096, dtype=BF16))
def highway(x: Tensor, y: Tensor, bias: Tensor) -> Tensor:
    gate = torch.sigmoid(x + bias)
    return gate * F.relu(y) + (1 - gate) * x
