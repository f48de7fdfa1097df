"""Losses and samples of generative models, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program, uniform


@program(normal(4096, 784), uniform(4096, 784), normal(4096, 64), normal(4096, 64), gradients=True)
def vae_evidence_bound(logits: Tensor, pixels: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    fit = F.binary_cross_entropy_with_logits(logits, pixels.detach(), reduction="none").sum(-1)
    kl = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1)
    return (fit + 4.0 * kl).mean()


@program(normal(32, 8, 128, 128), normal(32, 4, 128, 128), gradients=True)
def latent_sample_of_moments(moments: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_variance = moments.chunk(2, 1)
    log_variance = log_variance.clamp(-30.0, 20.0)
    sample = mean + torch.exp(0.5 * log_variance) * noise.detach()
    return sample * 0.18215, 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum((1, 2, 3))


@program(normal(1 << 18, 24), normal(1 << 18), gradients=True)
def mixture_density_nll(heads: Tensor, y: Tensor) -> Tensor:
    logits, mean, log_spread = heads.chunk(3, 1)
    z = (y.detach()[:, None] - mean) * torch.exp(-log_spread)
    log_p = F.log_softmax(logits, 1) - log_spread - 0.5 * z.square() - 0.9189385
    return -log_p.logsumexp(1).mean()


@program(normal(64, 4, 128, 128), normal(64, 4, 128, 128), uniform(64), gradients=True)
def diffusion_loss_min_snr(predicted: Tensor, noise: Tensor, kept: Tensor) -> Tensor:
    signal = (kept.detach() * 0.98 + 0.01) / (1 - kept.detach() * 0.98 - 0.01)
    weight = signal.clamp(max=5.0) / signal
    return ((predicted - noise.detach()).square().mean((1, 2, 3)) * weight).mean()


@program(*[normal(16, 4, 192, 192, dtype=BF16)] * 3, uniform(16), gradients=True)
def velocity_prediction_loss(predicted: Tensor, clean: Tensor, noise: Tensor, time: Tensor) -> Tensor:
    angle = time.detach()[:, None, None, None] * 1.5707963
    goal = angle.cos() * noise.detach().float() - angle.sin() * clean.detach().float()
    return F.mse_loss(predicted.float(), goal.float())


@program(*[normal(32, 3, 192, 192)] * 3, normal(32), gradients=True)
def preconditioned_denoiser_loss(raw: Tensor, clean: Tensor, noise: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    """EDM: scales of the input and the output by the noise's level."""
    sigma = (level.detach() * 1.2 - 1.2).exp()[:, None, None, None]
    noisy = clean.detach() + sigma * noise.detach()
    total = sigma.square() + 0.25
    denoised = 0.25 / total * noisy + 0.5 * sigma * total.rsqrt() * raw
    weight = total / (0.5 * sigma).square()
    return (weight * (denoised - clean.detach()).square()).mean(), noisy * total.rsqrt()


@program(*[normal(64, 256, 1024, dtype=F16)] * 3, uniform(64), gradients=True)
def flow_matching_loss(velocity: Tensor, clean: Tensor, noise: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
    t = time.detach()[:, None, None].to(clean.dtype)
    between = (1 - t) * noise.detach() + t * clean.detach()
    return (velocity.float() - (clean.detach() - noise.detach()).float()).square().mean(), between


@program(normal(64, 1, 256, 256), normal(64, 1, 256, 256), gradients=True)
def hinge_losses_of_a_discriminator(real: Tensor, fake: Tensor) -> tuple[Tensor, Tensor]:
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean(), -fake.mean()


@program(normal(128, 3, 128, 128), gradients=True)
def gradient_penalty_of_a_critic(slopes: Tensor) -> Tensor:
    return 10.0 * (slopes.flatten(1).norm(2, dim=1) - 1).square().mean()


@program(normal(8192, 64), normal(512, 64), gradients=True)
def vector_quantised_codes(x: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest code by a fixed random product in place of distances, its gradient passed straight through."""
    place = (x.detach() @ table.detach().T).argmax(-1)
    code = table[place]
    loss = F.mse_loss(code, x.detach()) + 0.25 * F.mse_loss(x, code.detach())
    return x + (code - x).detach(), loss


@program(normal(65536, 8, 6), gradients=True)
def finite_scalar_quantisation(x: Tensor) -> tuple[Tensor, Tensor]:
    half = 3.5
    bounded = torch.tanh(x) * half
    rounded = bounded + (bounded.round() - bounded).detach()
    powers = 8 ** torch.arange(6, device=x.device)
    return rounded / half, ((rounded.detach() + half + 0.5).long() * powers).sum(-1)


@program(normal(8192, 1024), uniform(8192, 1024), gradients=True)
def gumbel_softmax_hard(logits: Tensor, draws: Tensor) -> Tensor:
    gumbel = -torch.log(-torch.log(draws.detach() * 0.998 + 0.001))
    soft = ((logits + gumbel) / 0.5).softmax(-1)
    hard = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
    return hard - soft.detach() + soft


@program(normal(1 << 17, 3, 10), normal(1 << 17), gradients=True)
def discretised_logistic_mixture(heads: Tensor, pixel: Tensor) -> Tensor:
    """PixelCNN++'s likelihood of one channel, ten components."""
    logits, mean, log_scale = heads.unbind(1)
    apart = torch.tanh(pixel.detach())[:, None] - mean
    scale = torch.exp(-log_scale.clamp(min=-7.0))
    upper, lower = torch.sigmoid(scale * (apart + 1 / 255)), torch.sigmoid(scale * (apart - 1 / 255))
    log_p = (upper - lower).clamp(min=1e-6).log()
    return -(log_p + logits.log_softmax(-1)).logsumexp(-1).mean()


@program(normal(32, 12, 128, 128), normal(32, 12, 128, 128), gradients=True)
def affine_coupling_with_log_determinant(x: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
    kept, changed = x.chunk(2, 1)
    raw, shift = heads.chunk(2, 1)
    scale = torch.sigmoid(raw + 2.0)
    return torch.cat([kept, changed * scale + shift], 1), scale.log().sum((1, 2, 3))


@program(normal(1 << 18, 32), normal(32), normal(32), normal(1), gradients=True)
def planar_flow_step(z: Tensor, u: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    bent = torch.tanh((z * w).sum(-1, keepdim=True) + b)
    slope = (1 - bent.square()) * w
    return z + 0.1 * u * bent, torch.log1p((slope * u).sum(-1).square() * 0.01)


@program(normal(16, 8192, 3), normal(16, 3, 3), gradients=True)
def points_turned_and_compared(points: Tensor, turn: Tensor) -> Tensor:
    turned = (points[:, :, :, None] * turn[:, None]).sum(2)
    return (turned - points.detach()).square().sum(-1).add(1e-6).sqrt().mean()
