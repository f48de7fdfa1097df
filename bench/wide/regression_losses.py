"""Losses of regression and of likelihoods, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, mask, normal, positive, program, uniform


@program(normal(4096, 4096), normal(4096, 4096), gradients=True)
def huber_both_sides(x: Tensor, y: Tensor) -> Tensor:
    return F.huber_loss(x, y, delta=0.5)


@program(normal(64, 3, 256, 256), normal(64, 3, 256, 256), mask(64, 1, 256, 256), gradients=True)
def smooth_l1_of_masked_pixels(x: Tensor, y: Tensor, kept: Tensor) -> Tensor:
    loss = F.smooth_l1_loss(x, y.detach(), reduction="none", beta=0.2) * kept
    return loss.sum() / kept.sum().clamp(min=1)


@program(normal(8192, 2048), normal(8192, 2048), gradients=True)
def log_cosh_loss(x: Tensor, y: Tensor) -> Tensor:
    d = x - y.detach()
    return (d + F.softplus(-2.0 * d) - 0.6931471805599453).mean()


@program(normal(1 << 20, 9), normal(1 << 20), gradients=True)
def pinball_nine_quantiles(predicted: Tensor, y: Tensor) -> Tensor:
    levels = torch.arange(1, 10, device=y.device) / 10
    d = y.detach()[:, None] - predicted
    return torch.maximum(levels * d, (levels - 1) * d).mean(0).sum()


@program(normal(4096, 2048), normal(4096, 2048), normal(4096, 2048), gradients=True)
def gaussian_nll_of_log_variance(mean: Tensor, log_variance: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (log_variance + (y.detach() - mean).square() * torch.exp(-log_variance)).mean()


@program(normal(2048, 4096), normal(2048, 4096), normal(2048, 4096), gradients=True)
def student_t_nll(location: Tensor, raw_scale: Tensor, y: Tensor) -> Tensor:
    scale = F.softplus(raw_scale) + 1e-3
    z = (y.detach() - location) / scale
    return (scale.log() + 2.5 * torch.log1p(z.square() / 4.0)).mean()


@program(normal(16384, 512), positive(16384, 512), gradients=True)
def poisson_nll_of_rates(log_rate: Tensor, count: Tensor) -> Tensor:
    return F.poisson_nll_loss(log_rate, count.detach(), log_input=True)


@program(positive(4096, 2048), normal(4096, 2048), positive(4096, 2048), gradients=True)
def negative_binomial_nll(mean: Tensor, raw_spread: Tensor, count: Tensor) -> Tensor:
    spread = F.softplus(raw_spread) + 0.1
    k, m = count.detach(), mean + 0.1
    return (spread * (spread / (spread + m)).log() + k * (m / (spread + m)).log()).mean().neg()


@program(normal(32, 3, 256, 256), normal(32, 3, 256, 256), gradients=True)
def charbonnier_and_edges(x: Tensor, y: Tensor) -> Tensor:
    d = x - y.detach()
    across = (d[..., 1:] - d[..., :-1]).abs().mean()
    return torch.sqrt(d.square() + 1e-6).mean() + 0.1 * across


@program(normal(16384, 768, dtype=BF16), normal(16384, 768, dtype=BF16), gradients=True)
def cosine_distance_of_rows(x: Tensor, y: Tensor) -> Tensor:
    return (1 - F.cosine_similarity(x.float(), y.float(), dim=-1)).mean()


@program(positive(1 << 24), positive(1 << 24), gradients=True)
def squared_log_error(x: Tensor, y: Tensor) -> Tensor:
    return (torch.log1p(x) - torch.log1p(y.detach())).square().mean().sqrt()


@program(positive(16, 1, 512, 512), positive(16, 1, 512, 512), mask(16, 1, 512, 512), gradients=True)
def scale_invariant_depth_loss(depth: Tensor, truth: Tensor, valid: Tensor) -> Tensor:
    d = torch.where(valid, (depth + 0.1).log() - (truth.detach() + 0.1).log(), 0.0)
    count = valid.sum((1, 2, 3))
    mean = d.sum((1, 2, 3)) / count
    return (d.square().sum((1, 2, 3)) / count - 0.85 * mean.square()).sqrt().mean()


@program(uniform(16, 3, 256, 256), uniform(16, 3, 256, 256), gradients=True)
def structural_similarity_loss(x: Tensor, y: Tensor) -> Tensor:
    mean_x, mean_y = F.avg_pool2d(x, 3, 1), F.avg_pool2d(y, 3, 1)
    var_x, var_y = F.avg_pool2d(x * x, 3, 1) - mean_x**2, F.avg_pool2d(y * y, 3, 1) - mean_y**2
    both = F.avg_pool2d(x * y, 3, 1) - mean_x * mean_y
    top = (2 * mean_x * mean_y + 0.01) * (2 * both + 0.03)
    return (1 - top / ((mean_x**2 + mean_y**2 + 0.01) * (var_x + var_y + 0.03))).mean() / 2


@program(normal(65536, 136), normal(65536, 136), gradients=True)
def wing_loss_of_landmarks(x: Tensor, y: Tensor) -> Tensor:
    d = (x - y.detach()).abs()
    inner = 10.0 * torch.log1p(d / 2.0)
    return torch.where(d < 1.5, inner, d + 4.0963).sum(-1).mean()


@program(normal(4096, 4096), normal(4096, 4096), normal(3), gradients=True)
def three_losses_weighed_by_uncertainty(x: Tensor, y: Tensor, log_variance: Tensor) -> Tensor:
    d = x - y.detach()
    losses = torch.stack((d.square().mean(), d.abs().mean(), d.exp().mean()))
    return (losses * torch.exp(-log_variance) + log_variance).sum()


@program(normal(512, 96, 321), normal(512, 96, 321), gradients=True)
def forecast_loss_in_normalised_units(predicted: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    mean, spread = y.detach().mean(1, keepdim=True), y.detach().std(1, keepdim=True) + 1e-5
    d = (predicted - y.detach()) / spread
    return d.square().mean(), (predicted.mean(1, keepdim=True) - mean).abs().mean()
