"""Gradients of norms, pooling and enlarged images in half types, as whole blocks have them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(32, 128, 28, 28, dtype=F16), normal(128), normal(128), gradients=True)
def batch_norm_relu_of_f16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x.to(weight.dtype), None, None, weight, bias, training=True)).to(x.dtype)


@program(normal(16, 320, 32, 32, dtype=BF16), normal(320), normal(320), gradients=True)
def group_norm_silu_of_320_channels(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.group_norm(x.to(weight.dtype), 32, weight, bias)).to(x.dtype)


@program(normal(8192, 1536, dtype=F16), normal(8192, 1536, dtype=F16), normal(1536, dtype=F16), gradients=True)
def residual_and_rms_norm_f16(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    scale = torch.rsqrt(total.float().square().mean(-1, keepdim=True) + 1e-6)
    return (total.float() * scale).to(x.dtype) * weight, total


@program(normal(16, 64, 112, 112), gradients=True)
def means_of_pools_of_three(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, 3, 2, 1).square().mean()


@program(normal(8, 64, 64, 64, dtype=BF16), gradients=True)
def enlarged_by_lines_and_added(x: Tensor) -> Tensor:
    return F.interpolate(x.float(), scale_factor=2, mode="bilinear", align_corners=False).relu()


@program(normal(4, 21, 65, 65))
def scores_enlarged_to_an_odd_image(x: Tensor) -> Tensor:
    return F.interpolate(x, size=(513, 513), mode="bicubic", align_corners=False)


@program(normal(65536, 64), normal(65536, 64), gradients=True)
def gated_norm_of_64(x: Tensor, gate: Tensor) -> Tensor:
    return F.layer_norm(x, (64,)) * torch.tanh(gate)
