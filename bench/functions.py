"""The functions that the pattern suite times: each is a thing that people write and a fuser should see through."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def complex_activation(x: Tensor, y: Tensor) -> Tensor:
    waves = torch.sin(x) * torch.cos(y)
    return torch.relu((waves + x) * y)


def mlp_dead_code(x: Tensor, w_in: Tensor, w_gate: Tensor, w_out: Tensor) -> Tensor:
    hidden = x @ w_in
    _gate = x @ w_gate  # never read
    return F.relu(hidden) @ w_out


def gelu_by_hand(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


def toy_graph_break(a: Tensor, b: Tensor) -> Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def trig(x: Tensor, y: Tensor) -> Tensor:
    return torch.cos(x) + torch.sin(y)


def small_pointwise(x: Tensor) -> Tensor:
    return torch.relu(x * 2 + 1).sin()


def softmax_by_hand(x: Tensor) -> Tensor:
    exponentials = torch.exp(x - x.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True)


def layernorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return x * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * weight


def residual_ln_gelu(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.layer_norm(x + residual, (x.shape[-1],), weight, bias))


def bias_gelu_dropout(x: Tensor, bias: Tensor) -> Tensor:
    return F.dropout(F.gelu(x + bias), 0.1, True)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, target)


def rope(query: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = query.chunk(2, -1)
    return query * cosine + torch.cat((-second, first), -1) * sine


def swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor) -> Tensor:
    return F.silu(x @ w_gate) * (x @ w_up)


def linear_bias_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.linear(x, weight, bias))


def batchnorm_relu(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, mean, variance, weight, bias, False))


def batchnorm_train(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, weight, bias, True))


def groupnorm_silu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, 32, weight, bias))


def col_sum(x: Tensor) -> Tensor:
    return x.sum(0)


def full_sum(x: Tensor) -> Tensor:
    return x.sum()


def var_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.var_mean(x, -1)


def transpose_add(x: Tensor, y: Tensor) -> Tensor:
    return x.t() + y


def multi_out(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x.sin(), x.cos(), x.sum(-1), x.amax(-1)


def sibling_reductions(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(0), x.sum(1)


def attention_by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, -1) @ value


def adamw(parameter: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient * gradient
    step = mean / (square.sqrt() + 1e-8) + 0.01 * parameter
    return parameter - 1e-3 * step, mean, square


def embedding_ln(index: Tensor, table: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(F.embedding(index, table), (table.shape[-1],), weight, bias)


def quantize_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def cumsum(x: Tensor) -> Tensor:
    return torch.cumsum(x, -1)
