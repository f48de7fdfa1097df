"""Penalties on weights, activations and images, and samples that are mixed, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, normal, program, uniform


@program(normal(32, 3, 320, 320), gradients=True)
def total_variation(x: Tensor) -> Tensor:
    down, across = x[:, :, 1:] - x[:, :, :-1], x[..., 1:] - x[..., :-1]
    return down.abs().mean() + across.abs().mean()


@program(normal(8, 64, 64, 64, 2), gradients=True)
def smoothness_of_a_flow_field(flow: Tensor) -> Tensor:
    x, y = flow[:, 1:] - flow[:, :-1], flow[:, :, 1:] - flow[:, :, :-1]
    z = flow[:, :, :, 1:] - flow[:, :, :, :-1]
    return (x.square().mean() + y.square().mean() + z.square().mean()) / 3


@program(normal(4096, 4096), normal(4096, 1024), gradients=True)
def group_lasso_and_elastic_net(a: Tensor, b: Tensor) -> Tensor:
    groups = a.square().sum(1).add(1e-8).sqrt().sum() + b.square().sum(0).add(1e-8).sqrt().sum()
    return 1e-4 * groups + 1e-5 * (a.abs().sum() + b.abs().sum()) + 1e-5 * a.square().sum()


@program(normal(1024, 512), gradients=True)
def orthogonality_of_weights(weight: Tensor) -> Tensor:
    gram = weight.T @ weight / 1024
    return (gram - torch.eye(512, device=weight.device, dtype=weight.dtype)).square().sum()


@program(normal(8192, 2000), normal(8192, 2000), gradients=True)
def symmetric_divergence_of_two_passes(first: Tensor, second: Tensor) -> Tensor:
    """R-Drop."""
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    return 0.25 * ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()


@program(normal(64, 3, 224, 224), uniform(64), gradients=True)
def mixed_samples_normalised(x: Tensor, weight: Tensor) -> Tensor:
    share = weight.detach()[:, None, None, None]
    mixed = share * x + (1 - share) * x.flip(0)
    return (mixed - 0.45) / 0.22


@program(normal(32, 3, 256, 256), uniform(32), gradients=True)
def cut_and_mixed_samples(x: Tensor, corner: Tensor) -> Tensor:
    place = torch.arange(256, device=x.device)
    start = (corner.detach() * 128)[:, None]
    inside = (place > start) & (place < start + 100)
    return torch.where((inside[:, :, None] & inside[:, None, :])[:, None], x.roll(1, 0), x)


@program(normal(4096, 4096), gradients=True)
def hoyer_sparsity_of_rows(x: Tensor) -> Tensor:
    return (x.abs().sum(1) / (x.square().sum(1).sqrt() + 1e-8)).mean()


@program(normal(64, 1000, 128), gradients=True)
def temporal_smoothness_and_activity(x: Tensor) -> Tensor:
    return (x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]).square().mean() + 0.1 * x.square().mean((0, 1)).sqrt().mean()


@program(normal(8192, 1024), normal(1024), gradients=True)
def sparse_autoencoder_penalty(x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    code = F.relu(x + bias)
    rate = code.mean(0)
    log_ratio = torch.log(0.05 / rate)
    return code, (0.05 * log_ratio).sum() + 1e-3 * code.sum(-1).mean()


@program(normal(16, 1024, 1024), gradients=True)
def laplacian_residual_of_a_field(u: Tensor) -> Tensor:
    inner = u[:, 1:-1, 1:-1]
    around = u[:, 2:, 1:-1] + u[:, :-2, 1:-1] + u[:, 1:-1, 2:] + u[:, 1:-1, :-2]
    return (around - 4 * inner + torch.sin(inner)).square().mean()


@program(normal(16, 65536), normal(16, 65536), gradients=True)
def log_spectra_apart(first: Tensor, second: Tensor) -> Tensor:
    frames = [one.unfold(1, 1024, 256).square().mean(-1) for one in (first, second)]
    return (torch.log(frames[0] + 1e-5) - torch.log(frames[1].detach() + 1e-5)).abs().mean()


@program(normal(32, 16, 1024), normal(32, 16, 1024), gradients=True)
def gram_matrices_apart(first: Tensor, second: Tensor) -> Tensor:
    grams = [(one[:, :, None] * one[:, None, :]).mean(-1) for one in (first, second.detach())]
    return (grams[0] - grams[1]).square().sum((1, 2)).mean()


@program(normal(16384, 1024, dtype=BF16), gradients=True)
def z_scored_rows_clipped(x: Tensor) -> Tensor:
    wide = x.float()
    z = (wide - wide.mean(-1, keepdim=True)) / (wide.std(-1, keepdim=True) + 1e-5)
    return torch.tanh(z / 3.0).to(x.dtype) * 3.0
