"""Scales of groups, experts, masks of grouped heads, and products with something odd behind them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, program

FLOAT8 = torch.float8_e4m3fn


@program(normal(4096, 7168, dtype=BF16))
def groups_of_128_to_eight_bit_floats(x: Tensor) -> tuple[Tensor, Tensor]:
    groups = x.float().view(4096, 56, 128)
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    return (groups / scale).to(FLOAT8).view(4096, 7168), scale.squeeze(-1)


@program(normal(4096, 14336, dtype=BF16))
def gate_to_eight_bit_floats(packed: Tensor) -> tuple[Tensor, Tensor]:
    gate, up = packed.float().chunk(2, -1)
    value = (F.silu(gate) * up).view(4096, 56, 128)
    scale = value.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    return (value / scale).to(FLOAT8), scale


@program(index(4096, 2048, high=256, dtype=torch.uint8), normal(4096, 32), normal(4096, 32))
def bytes_with_scale_and_zero_of_groups(code: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    groups = code.view(4096, 32, 64).to(torch.float32)
    return ((groups - zero[..., None]) * scale[..., None]).view(4096, 2048).to(BF16)


@program(normal(8192, 128), normal(128))
def eight_experts_of_128_with_a_bias(scores: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    chance = torch.sigmoid(scores)
    _, expert = (chance + bias).topk(8, -1)
    weight = chance.gather(-1, expert)
    return weight / (weight.sum(-1, keepdim=True) + 1e-20) * 2.5, expert


@program(normal(2, 32, 1024, 1024, dtype=BF16), mask(2, 1, 1024, 1024), normal(32))
def scores_of_grouped_heads_masked(scores: Tensor, seen: Tensor, sink: Tensor) -> Tensor:
    masked = torch.where(seen, scores.float() * 0.0884, -torch.inf)
    top = torch.maximum(masked.amax(-1, keepdim=True), sink[None, :, None, None])
    chance = torch.exp(masked - top)
    below = chance.sum(-1, keepdim=True) + torch.exp(sink[None, :, None, None] - top)
    return (chance / below).to(BF16)


@program(normal(1024, 1000, dtype=BF16), normal(1000, 1003, dtype=BF16), normal(1024), limit="arithmetic")
def product_of_1003_columns_scaled_by_row(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return F.leaky_relu((x @ weight).float() * scale[:, None], 0.1)


@program(normal(2048, 1024, dtype=BF16), normal(1024, 1024, dtype=BF16), normal(2048, 1024), limit="arithmetic")
def product_normed_with_a_residual(x: Tensor, weight: Tensor, residual: Tensor) -> Tensor:
    return F.layer_norm((x @ weight).float() + residual, (1024,))


@program(normal(16, 512, 64, dtype=BF16), normal(16, 64, 512, dtype=BF16), mask(512, 512), limit="arithmetic")
def batched_product_masked_and_squared(a: Tensor, b: Tensor, kept: Tensor) -> Tensor:
    return torch.where(kept, torch.relu(a @ b).square(), 0)
