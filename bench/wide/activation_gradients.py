"""Activations with gates, biases and residuals, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(8192, 5632, dtype=BF16), gradients=True)
def swiglu_of_two_halves(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


@program(normal(8192, 2816, dtype=BF16), normal(8192, 2816, dtype=BF16), gradients=True)
def geglu_tanh_of_two_inputs(gate: Tensor, up: Tensor) -> Tensor:
    return F.gelu(gate, approximate="tanh") * up


@program(normal(4096, 4096, dtype=BF16), normal(4096, dtype=BF16), gradients=True)
def clamped_swiglu_interleaved(x: Tensor, bias: Tensor) -> Tensor:
    """The gate of gpt-oss: gates and values in turns along the row."""
    gate, up = (x + bias).unflatten(-1, (-1, 2)).unbind(-1)
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


@program(normal(8192, 3072, dtype=BF16), normal(3072, dtype=BF16), gradients=True)
def bias_gelu_with_bias_gradient(x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias)


@program(normal(16384, 1024), normal(1024), gradients=True)
def bias_softplus(x: Tensor, bias: Tensor) -> Tensor:
    return F.softplus(x + bias)


@program(normal(32, 256, 48, 48), normal(256), gradients=True)
def channel_bias_mish(x: Tensor, bias: Tensor) -> Tensor:
    return F.mish(x + bias[:, None, None])


@program(normal(8192, 4096, dtype=F16), gradients=True)
def squared_relu(x: Tensor) -> Tensor:
    return F.relu(x).square()


@program(normal(32, 128, 4096), normal(128), gradients=True)
def snake_with_frequencies(x: Tensor, alpha: Tensor) -> Tensor:
    a = alpha.exp()[:, None]
    return x + torch.sin(a * x).square() / (a + 1e-9)


@program(normal(32, 192, 56, 56, dtype=F16), normal(192, dtype=F16), gradients=True)
def prelu_of_channels_trained(x: Tensor, slope: Tensor) -> Tensor:
    return F.prelu(x, slope)


@program(normal(32, 56, 56, 128), normal(128), normal(32, 56, 56, 128), normal(128), gradients=True)
def scaled_branch_and_residual(branch: Tensor, bias: Tensor, x: Tensor, scale: Tensor) -> Tensor:
    """LayerScale of ConvNeXT and of vision transformers."""
    return x + scale * (branch + bias)


@program(normal(32, 1152, 28, 28, dtype=BF16), normal(32, 1152, dtype=BF16), gradients=True)
def squeeze_and_excite_gate(x: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
    gated = F.silu(x) * torch.sigmoid(gate)[..., None, None]
    return gated, gated.float().mean((2, 3))


@program(normal(16, 512, 2048), gradients=True)
def glu_over_channels(x: Tensor) -> Tensor:
    return F.glu(x, 1)


@program(normal(32, 64, 64, 64), gradients=True)
def concatenated_relu(x: Tensor) -> Tensor:
    return F.relu(torch.cat([x, -x], 1))


@program(normal(16384, 2048, dtype=BF16), normal(2048, dtype=BF16), gradients=True)
def swish_of_learned_slope(x: Tensor, beta: Tensor) -> Tensor:
    return x * torch.sigmoid(beta * x)


@program(normal(8192, 2048), gradients=True)
def selu_then_hard_swish(x: Tensor) -> Tensor:
    return F.hardswish(F.selu(x) + 0.1)


@program(normal(16384, 4, 512), gradients=True)
def maxout_of_four(x: Tensor) -> Tensor:
    return x.amax(1)


@program(normal(32768, 1024, dtype=BF16), normal(1024, dtype=BF16), normal(1024, dtype=BF16), gradients=True)
def column_scale_and_shift(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return x * scale + shift


@program(normal(8192, 2048), normal(2048), normal(2048), normal(2048), gradients=True)
def learned_rational_activation(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return (a * x + b * x.square()) / (1 + (c * x).abs())


@program(normal(4096, 4096, dtype=BF16), normal(4096, 4096, dtype=BF16), normal(4096, dtype=BF16), gradients=True)
def highway_gate(x: Tensor, raw: Tensor, bias: Tensor) -> Tensor:
    gate = torch.sigmoid(raw + bias)
    return gate * torch.tanh(x) + (1 - gate) * x


@program(normal(4096, 2048), normal(4096, 512), normal(4096, 512), gradients=True)
def lstm_cell_gates(gates: Tensor, cell: Tensor, peephole: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = gates.chunk(4, 1)
    new = torch.sigmoid(f + 1) * cell + torch.sigmoid(i + peephole) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


@program(normal(8192, 768), normal(8192, 768), normal(8192, 256), gradients=True)
def gru_cell_gates(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    reset_x, update_x, new_x = from_input.chunk(3, -1)
    reset_h, update_h, new_h = from_state.chunk(3, -1)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
    return new + update * (state - new)


@program(normal(64, 256), normal(256), gradients=True)
def small_bias_tanh(x: Tensor, bias: Tensor) -> Tensor:
    return torch.tanh(x + bias)


@program(normal(16, 1024, 1024, dtype=BF16), normal(16, 1024, dtype=BF16), gradients=True)
def residual_gated_by_sample(x: Tensor, gate: Tensor) -> Tensor:
    return x + torch.tanh(gate)[:, None, :] * F.silu(x)
