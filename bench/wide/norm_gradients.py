"""Normalisations, forward and backward, of short and long rows in several layouts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(262144, 33), normal(33), normal(33), gradients=True)
def layer_norm_of_33(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (33,), weight, bias)


@program(normal(131072, 96, dtype=BF16), normal(96, dtype=BF16), normal(96, dtype=BF16), gradients=True)
def layer_norm_of_96_bf16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (96,), weight, bias)


@program(normal(16384, 768), normal(768), normal(768), gradients=True)
def layer_norm_of_768(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (768,), weight, bias)


@program(normal(4096, 8192, dtype=BF16), normal(8192, dtype=BF16), gradients=True)
def layer_norm_of_8192_without_bias(x: Tensor, weight: Tensor) -> Tensor:
    return F.layer_norm(x, (8192,), weight)


@program(normal(8192, 2560, dtype=BF16), normal(2560, dtype=BF16), gradients=True)
def rms_norm_of_2560(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (2560,), weight, 1e-6)


@program(normal(8192, 4096, dtype=BF16), normal(4096, dtype=BF16), gradients=True)
def rms_norm_one_plus_weight(x: Tensor, weight: Tensor) -> Tensor:
    """Gemma's form, in float32."""
    wide = x.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return (normed * (1.0 + weight.float())).to(x.dtype)


@program(normal(8192, 2048, dtype=BF16), normal(8192, 2048, dtype=BF16), normal(2048), gradients=True)
def rms_norm_after_residual(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    return F.rms_norm(total.float(), (2048,), weight).to(x.dtype), total


@program(normal(16, 512, 16, 128, dtype=BF16), normal(128, dtype=BF16), gradients=True)
def query_norm_of_heads(x: Tensor, weight: Tensor) -> Tensor:
    wide = x.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
    return (normed.to(x.dtype) * weight).transpose(1, 2)


@program(normal(16, 64, 64, 64), normal(64), normal(64), gradients=True)
def group_norm_of_eight_groups(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.group_norm(x, 8, weight, bias)


@program(normal(8, 320, 64, 64, dtype=F16), normal(320, dtype=F16), normal(320, dtype=F16), gradients=True)
def group_norm_silu_f16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, 32, weight, bias))


@program(normal(16, 32, 32, 256), normal(256), normal(256), gradients=True)
def group_norm_channels_last(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.group_norm(x.permute(0, 3, 1, 2), 32, weight, bias).permute(0, 2, 3, 1)


@program(normal(32, 128, 56, 56), normal(128), normal(128), gradients=True)
def batch_norm_in_training(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, True)


@program(normal(32, 64, 56, 56), normal(32, 64, 56, 56), normal(64), normal(64), gradients=True)
def batch_norm_residual_relu(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, weight, bias, True) + residual)


@program(normal(16384, 1024), normal(1024), normal(1024), gradients=True)
def batch_norm_of_features(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, True, 0.1, 1e-5)


@program(normal(16, 48, 96, 96), normal(48), normal(48), gradients=True)
def instance_norm_leaky(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.leaky_relu(F.instance_norm(x, weight=weight, bias=bias), 0.2)


@program(normal(16, 28, 28, 512, dtype=BF16), normal(512, dtype=BF16), normal(512, dtype=BF16), gradients=True)
def global_response_norm_trained(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    spread = x.float().square().sum((1, 2), keepdim=True).sqrt()
    share = spread / (spread.mean(-1, keepdim=True) + 1e-6)
    return weight * (x * share.to(x.dtype)) + bias + x


@program(normal(2048, 4096), normal(2048, 1), gradients=True)
def weight_norm_of_rows(v: Tensor, g: Tensor) -> Tensor:
    return v * (g / v.norm(dim=1, keepdim=True))


@program(normal(512, 512, 3, 3), normal(4, 512), gradients=True)
def modulated_and_demodulated_weights(weight: Tensor, style: Tensor) -> Tensor:
    """StyleGAN2's weights for each sample."""
    scaled = weight[None] * style[:, None, :, None, None] * 0.01
    return scaled * torch.rsqrt(scaled.square().sum((2, 3, 4), keepdim=True) + 1e-8)


@program(normal(1024, 512, 3, 3), gradients=True)
def standardised_convolution_weights(weight: Tensor) -> Tensor:
    mean = weight.mean((1, 2, 3), keepdim=True)
    return (weight - mean) * torch.rsqrt(weight.var((1, 2, 3), keepdim=True) + 1e-6)


@program(normal(16, 512, 768), normal(16, 768), normal(16, 768), gradients=True)
def modulated_layer_norm_trained(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """The adaptive norm of diffusion transformers: one shift and scale a sample."""
    return F.layer_norm(x, (768,)) * (1 + scale[:, None]) + shift[:, None]


@program(normal(16, 256, 4096), normal(16, 256), normal(16, 256), gradients=True)
def adaptive_instance_norm(x: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    own = x.mean(2, keepdim=True)
    return (x - own) / (x.var(2, keepdim=True) + 1e-5).sqrt() * spread[..., None] + mean[..., None]


@program(normal(16, 96, 64, 64), normal(96), normal(96), gradients=True)
def layer_norm_over_channels_in_the_middle(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).square().mean(1, keepdim=True)
    return weight[:, None, None] * ((x - mean) * torch.rsqrt(variance + 1e-6)) + bias[:, None, None]


@program(normal(16384, 1024, dtype=BF16), normal(1, dtype=BF16), normal(1024, dtype=BF16), gradients=True)
def dynamic_tanh_for_a_norm(x: Tensor, alpha: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(alpha * x) * weight


@program(normal(32, 64, 48, 48), normal(64), normal(64), normal(64), gradients=True)
def filter_response_norm(x: Tensor, weight: Tensor, bias: Tensor, threshold: Tensor) -> Tensor:
    normed = x * torch.rsqrt(x.square().mean((2, 3), keepdim=True) + 1e-6)
    weight, bias, threshold = (one[:, None, None] for one in (weight, bias, threshold))
    return torch.maximum(weight * normed + bias, threshold)


@program(normal(64, 8, 4, 64), normal(64), normal(64), gradients=True)
def small_layer_norm_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.layer_norm(x, (64,), weight, bias))


@program(normal(4096, 3072), normal(3072), normal(3072), gradients=True)
def layer_norm_then_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.layer_norm(x, (3072,), weight, bias))


@program(normal(8192, 1536, dtype=BF16), normal(8192, 1536, dtype=BF16), normal(1536, dtype=BF16), gradients=True)
def gated_rms_norm(x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    """Mamba 2's norm after its gate."""
    gated = x.float() * F.silu(gate.float())
    return (gated * torch.rsqrt(gated.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight
