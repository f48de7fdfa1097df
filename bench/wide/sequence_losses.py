"""Recurrences over a few steps and losses of sequences, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, program


@program(normal(8, 4096, 32), normal(32, 32), index(8, 4096, high=32), gradients=True)
def linear_chain_crf(emissions: Tensor, moves: Tensor, tags: Tensor) -> Tensor:
    """A conditional random field: the logarithm of all paths less the score of one."""
    alpha = emissions[0]
    for t in range(1, 8):
        alpha = (alpha[:, :, None] + moves).logsumexp(1) + emissions[t]
    own = emissions.gather(2, tags[..., None]).sum((0, 2)) + moves[tags[:-1], tags[1:]].sum(0)
    return (alpha.logsumexp(1) - own).mean()


@program(normal(12, 16384, 16), gradients=True)
def alignment_paths_of_12_frames(log_p: Tensor) -> Tensor:
    """CTC's forward variables: each stays or comes from the one before."""
    alpha = log_p[0]
    for t in range(1, 12):
        before = F.pad(alpha[:, :-1], (1, 0), value=-30.0)
        alpha = torch.logaddexp(alpha, before) + log_p[t]
    return -torch.logaddexp(alpha[:, -1], alpha[:, -2]).mean()


@program(normal(32, 256, 256, dtype=BF16), index(32, 40, high=256), index(32, 40, high=8192), gradients=True)
def states_at_masked_words(hidden: Tensor, place: Tensor, words: Tensor) -> Tensor:
    picked = hidden.gather(1, place[..., None].expand(32, 40, 256))
    return F.gelu(picked.float()) * (words[..., None] % 2)


@program(normal(8, 8192, 64), normal(8, 8192, 64), gradients=True)
def gated_recurrence_of_8_steps(gates: Tensor, values: Tensor) -> Tensor:
    state = torch.zeros_like(values[0])
    states = []
    for t in range(8):
        keep = torch.sigmoid(gates[t])
        state = keep * state + (1 - keep) * values[t]
        states.append(state)
    return torch.stack(states)


@program(normal(64, 512, 512, dtype=BF16), mask(64, 512), gradients=True)
def masked_mean_pooling_normalised(hidden: Tensor, kept: Tensor) -> Tensor:
    weight = kept[..., None].float()
    pooled = (hidden.float() * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
    return F.normalize(pooled, dim=-1)


@program(normal(2048, 2000), normal(2048, 100), normal(2048, 1), index(2048, 100, high=2000), gradients=True)
def pointer_generator_mixture(logits: Tensor, copies: Tensor, gate: Tensor, place: Tensor) -> Tensor:
    p = torch.sigmoid(gate)
    mixed = (p * logits.softmax(-1)).scatter_add(1, place, (1 - p) * copies.softmax(-1))
    return torch.log(mixed + 1e-10)


@program(normal(64, 512, 256), mask(64, 512), gradients=True)
def statistics_pooling_of_speech(x: Tensor, kept: Tensor) -> Tensor:
    weight = kept[..., None].to(x.dtype) / kept.sum(1)[:, None, None]
    mean = (x * weight).sum(1)
    spread = ((x - mean[:, None]).square() * weight).sum(1).clamp(min=1e-6).sqrt()
    return torch.cat([mean, spread], -1)


@program(normal(256, 128, 64), normal(64), normal(64), gradients=True)
def exponential_averages_of_4_taps(x: Tensor, decay: Tensor, gain: Tensor) -> Tensor:
    keep = torch.sigmoid(decay)
    padded = F.pad(x, (0, 0, 3, 0))
    taps = [padded[:, 3 - k : 3 - k + 128] * keep**k for k in range(4)]
    return sum(taps[1:], taps[0]) * gain


@program(normal(32, 128, 128), gradients=True)
def soft_edit_path_of_antidiagonals(cost: Tensor) -> Tensor:
    """Two rows of soft dynamic time warping, with the minimum of three as a logarithm of a sum."""
    above = cost[:, 0].cumsum(1)
    ways = torch.stack([above[:, 1:], above[:, :-1], cost[:, 1, :-1].cumsum(1)])
    return -(-ways).logsumexp(0) + cost[:, 1, 1:]


@program(normal(512, 64, 32), normal(512, 64, 32), gradients=True)
def next_state_prediction_loss(predicted: Tensor, states: Tensor) -> Tensor:
    return F.mse_loss(predicted[:, :-1], states[:, 1:].detach()) + 1e-3 * predicted.square().mean()


@program(normal(64, 512, 768, dtype=BF16), index(64, high=512), normal(768), gradients=True)
def last_state_of_each_sequence(hidden: Tensor, last: Tensor, weight: Tensor) -> Tensor:
    picked = hidden[torch.arange(64, device=hidden.device), last].float()
    return (F.normalize(picked, dim=-1) * weight).sum(-1)


@program(normal(16384, 1000), index(16384, high=1000), gradients=True)
def negative_log_likelihood_by_rows_and_words(logits: Tensor, words: Tensor) -> Tensor:
    log_p = logits.log_softmax(-1)
    return -log_p[torch.arange(16384, device=logits.device), words].mean()
