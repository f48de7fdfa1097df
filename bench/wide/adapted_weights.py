"""Weights and activations as adapters and quantisation in training have them, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, normal, positive, program


@program(normal(4096, 4096), gradients=True)
def fake_quantised_tensor(x: Tensor) -> Tensor:
    scale = x.detach().abs().amax() / 127
    rounded = (x / scale).round().clamp(-127, 127) * scale
    return x + (rounded - x).detach()


@program(normal(4096, 4096), positive(4096, 1), gradients=True)
def learned_step_size_of_rows(weight: Tensor, step: Tensor) -> Tensor:
    """LSQ with four bits; rounding passes its gradient on."""
    scaled = (weight / (step + 0.1)).clamp(-8.0, 7.0)
    return (scaled + (scaled.round() - scaled).detach()) * (step + 0.1)


@program(normal(4096, 4096, dtype=BF16), gradients=True)
def ternary_weights_straight_through(weight: Tensor) -> Tensor:
    """BitNet b1.58."""
    wide = weight.float()
    scale = 1.0 / wide.detach().abs().mean().clamp(min=1e-5)
    ternary = (wide * scale).round().clamp(-1, 1) / scale
    return (wide + (ternary - wide).detach()).to(weight.dtype)


@program(normal(8192, 4096, dtype=BF16), gradients=True)
def fake_quantised_tokens(x: Tensor) -> Tensor:
    wide = x.float()
    scale = 127.0 / wide.detach().abs().amax(-1, keepdim=True).clamp(min=1e-5)
    rounded = (wide * scale).round() / scale
    return (wide + (rounded - wide).detach()).to(x.dtype)


@program(normal(4096, 4096), gradients=True)
def fake_quantised_groups_of_four_bits(weight: Tensor) -> Tensor:
    groups = weight.reshape(-1, 128)
    low, high = groups.detach().amin(1, keepdim=True), groups.detach().amax(1, keepdim=True)
    step = (high - low) / 15
    rounded = ((groups - low) / step).round() * step + low
    return (groups + (rounded - groups).detach()).reshape(4096, 4096)


@program(normal(4096, 1024, dtype=BF16), normal(16, 1024, dtype=BF16), normal(1024, 16, dtype=BF16), gradients=True)
def low_rank_update_of_activations(x: Tensor, down: Tensor, up: Tensor) -> Tensor:
    return x + (x @ down.T) @ up.T * 2.0


@program(normal(2048, 4096), normal(2048, 8), normal(8, 4096), normal(2048), gradients=True)
def weight_decomposed_low_rank(weight: Tensor, up: Tensor, down: Tensor, magnitude: Tensor) -> Tensor:
    """DoRA."""
    changed = weight.detach() + up @ down
    norm = changed.norm(dim=1, keepdim=True).detach()
    return magnitude[:, None] * changed / norm


@program(normal(8192, 2048, dtype=BF16), normal(2048, dtype=BF16), gradients=True)
def learned_rescaling_of_activations(x: Tensor, scale: Tensor) -> Tensor:
    return (x * scale).relu()


@program(normal(2048, 4096), normal(2048, 4096), gradients=True)
def pruned_by_scores_straight_through(weight: Tensor, scores: Tensor) -> Tensor:
    kept = (scores > 0).to(weight.dtype)
    return weight * (kept + torch.sigmoid(scores) - torch.sigmoid(scores).detach())


@program(normal(4096, 4096), gradients=True)
def binary_weights_scaled_by_row(weight: Tensor) -> Tensor:
    """XNOR-Net: signs, with the gradient of a clamp."""
    scale = weight.abs().mean(1, keepdim=True)
    soft = weight.clamp(-1, 1)
    return scale * (soft + (weight.sign() - soft).detach())


@program(normal(16384, 64, dtype=BF16), normal(16384, 64, dtype=BF16), gradients=True)
def router_weights_and_balance_loss(logits: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
    """A mixture of experts: weights of the two best, Switch's balance loss and the z-loss."""
    wide = logits.float() + 0.01 * noise.detach().float()
    p = wide.softmax(-1)
    first = p.argmax(-1)
    share = F.one_hot(first, 64).to(p.dtype).mean(0)
    return p.amax(-1), 64 * (share * p.mean(0)).sum(), wide.logsumexp(-1).square().mean()


@program(normal(262144, 16), normal(16), gradients=True)
def sigmoid_router_with_bias(logits: Tensor, bias: Tensor) -> Tensor:
    """DeepSeek's gate without groups: scores of sigmoids that are normalised over the row."""
    scores = torch.sigmoid(logits + bias)
    return scores / (scores.sum(-1, keepdim=True) + 1e-20) * 2.5


@program(*[normal(8192, 1024, dtype=BF16)] * 4, normal(8192, 4), gradients=True)
def outputs_of_four_experts_combined(a: Tensor, b: Tensor, c: Tensor, d: Tensor, logits: Tensor) -> Tensor:
    weight = logits.softmax(-1).to(a.dtype)
    return sum((weight[:, k, None] * one for k, one in enumerate((a, b, c, d))), torch.zeros_like(a))


@program(normal(64, 64), normal(64, 4), normal(4, 64), gradients=True)
def small_low_rank_weight(weight: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return torch.tanh(weight + 0.5 * (up @ down))


@program(normal(65536, 64, dtype=BF16), gradients=True)
def weights_of_the_two_best_experts(logits: Tensor) -> Tensor:
    best = logits.float().softmax(-1).topk(2, -1).values
    return best / best.sum(-1, keepdim=True)
