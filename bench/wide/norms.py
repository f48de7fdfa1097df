"""Normalisations, as models write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, mask, normal, positive, program


@program(normal(4, 2048, 16, 128, dtype=BF16), normal(4, 2048, 4, 128, dtype=BF16), *[normal(128, dtype=BF16)] * 2)
def norm_of_queries_and_keys(q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor) -> tuple[Tensor, ...]:
    q = q * torch.rsqrt(q.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(q.dtype) * q_weight
    k = k * torch.rsqrt(k.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(k.dtype) * k_weight
    return q.transpose(1, 2), k.transpose(1, 2)


@program(normal(16, 1024, 1152, dtype=BF16), normal(16, 1152, dtype=BF16), normal(16, 1152, dtype=BF16))
def modulated_layer_norm(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],)) * (1 + scale[:, None]) + shift[:, None]


@program(normal(8192, 3072, dtype=BF16), normal(8192, 3072, dtype=BF16), normal(3072, dtype=BF16))
def residual_and_rms_norm_about_one(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    wide = total.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * (1.0 + weight.float())
    return normed.to(x.dtype), total


@program(normal(8192, 2048, dtype=BF16), normal(8192, 2048, dtype=BF16), *[normal(2048, dtype=BF16)] * 2)
def norm_before_and_after_a_residual(x: Tensor, residual: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return F.rms_norm(residual + F.rms_norm(x, (2048,), first), (2048,), second)


@program(normal(32, 64, 112, 112), normal(64), normal(64))
def instance_norm_and_leaky_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.leaky_relu(F.instance_norm(x, weight=weight, bias=bias), 0.2)


@program(normal(32, 320, 32, 32, dtype=F16), normal(320, dtype=F16), normal(320, dtype=F16))
def group_norm_of_ten_channels(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.group_norm(x, 32, weight, bias)


@program(normal(32, 56, 56, 256), *[normal(256)] * 2, positive(256), *[normal(256)] * 2)
def batch_norm_of_channels_last(x: Tensor, shift: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x.permute(0, 3, 1, 2) + shift[:, None, None], mean, var, w, b))


@program(normal(16, 256, 64, 64))
def unit_channels(x: Tensor) -> Tensor:
    return F.normalize(x, dim=1)


@program(normal(16, 192, 56, 56, dtype=BF16), normal(192, dtype=BF16), normal(192, dtype=BF16))
def layer_norm_over_channels(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    var = (x - mean).pow(2).mean(1, keepdim=True)
    return weight[:, None, None] * ((x - mean) / torch.sqrt(var + 1e-6)) + bias[:, None, None]


@program(normal(512, 512, 3, 3), normal(512))
def standardised_filters(weight: Tensor, gain: Tensor) -> Tensor:
    var, mean = torch.var_mean(weight, (1, 2, 3), keepdim=True)
    return (weight - mean) * torch.rsqrt(var * weight[0].numel() + 1e-4) * gain[:, None, None, None]


@program(normal(8, 256, 256, 3, 3), normal(8, 256))
def demodulated_filters(weight: Tensor, style: Tensor) -> Tensor:
    scaled = weight * style[:, None, :, None, None]
    return scaled * torch.rsqrt(scaled.square().sum((2, 3, 4), keepdim=True) + 1e-8)


@program(normal(16, 28, 28, 768), normal(768), normal(768))
def global_response_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    size = torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
    return gamma * (x * (size / (size.mean(-1, keepdim=True) + 1e-6))) + beta + x


@program(normal(32, 96, 55, 55))
def local_response_norm(x: Tensor) -> Tensor:
    return F.local_response_norm(x, 5)


@program(normal(64, 512, 512), mask(64, 512))
def layer_norm_of_what_is_kept(x: Tensor, kept: Tensor) -> Tensor:
    weight = kept[:, :, None].to(x.dtype)
    count = weight.sum(1, keepdim=True).clamp(min=1)
    mean = (x * weight).sum(1, keepdim=True) / count
    var = ((x - mean).square() * weight).sum(1, keepdim=True) / count
    return (x - mean) * torch.rsqrt(var + 1e-5) * weight


@program(normal(8, 1024, 2048, dtype=BF16), normal(8, 1024, 2048, dtype=BF16))
def norm_of_each_head_and_gate(x: Tensor, gate: Tensor) -> Tensor:
    heads = x.unflatten(-1, (16, 128))
    return F.layer_norm(heads, (128,)).flatten(-2) * F.silu(gate)


@program(normal(4099, 4093), normal(4093), normal(4093))
def layer_norm_of_prime_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (4093,), weight, bias)


@program(normal(65536, 33, 7))
def norm_of_small_matrices(x: Tensor) -> Tensor:
    return x / torch.linalg.matrix_norm(x, keepdim=True)


@program(normal(12, 77, 768), normal(768), normal(768))
def layer_norm_of_a_prompt(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (768,), weight, bias)


@program(normal(4096, 1024), normal(1024, 1024), normal(1024), normal(1024), limit="arithmetic")
def layer_norm_of_a_product(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(x @ weight, (1024,), scale, shift)


@program(normal(4096, 1024), normal(1024, 1024), normal(1024), limit="arithmetic")
def rms_norm_of_a_product(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return F.rms_norm(x @ weight, (1024,), scale)


@program(normal(64, 400_000))
def softmax_of_400000_columns(x: Tensor) -> Tensor:
    return x.softmax(-1)
