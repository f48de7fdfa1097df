"""Attention written out and what surrounds it, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, normal, program


@program(normal(16, 8, 256, 256), gradients=True)
def causal_softmax_of_scores(scores: Tensor) -> Tensor:
    hidden = torch.ones(256, 256, dtype=torch.bool, device=scores.device).triu(1)
    return (scores / 8.0).masked_fill(hidden, -torch.inf).softmax(-1)


@program(normal(8, 12, 384, 384, dtype=BF16), normal(12), gradients=True)
def softmax_with_linear_biases_trained(scores: Tensor, slope: Tensor) -> Tensor:
    place = torch.arange(384, device=scores.device)
    away = (place[None, :] - place[:, None]).abs()
    return (scores.float() - slope.exp()[:, None, None] * away).softmax(-1).to(scores.dtype)


@program(normal(8, 16, 256, 256, dtype=BF16), gradients=True)
def softmax_of_capped_scores(scores: Tensor) -> Tensor:
    return F.softmax(50.0 * torch.tanh(scores.float() / 50.0), -1).to(scores.dtype)


@program(normal(64, 8, 64, 64), normal(8, 64, 64), gradients=True)
def window_softmax_with_relative_bias(scores: Tensor, bias: Tensor) -> Tensor:
    return (scores * 0.17677669 + bias).softmax(-1)


@program(normal(1024, 6, 49, 49, dtype=F16), normal(169, 6), gradients=True)
def window_softmax_with_bias_table(scores: Tensor, table: Tensor) -> Tensor:
    y, x = torch.meshgrid(*[torch.arange(7, device=scores.device)] * 2, indexing="ij")
    away_y, away_x = (one.flatten()[:, None] - one.flatten()[None, :] + 6 for one in (y, x))
    bias = table[(away_y * 13 + away_x).reshape(-1)].reshape(49, 49, 6).permute(2, 0, 1)
    return (scores.float() + bias).softmax(-1).to(scores.dtype)


@program(normal(8, 16, 256, 256), normal(16), gradients=True)
def softmax_with_a_sink_trained(scores: Tensor, sink: Tensor) -> Tensor:
    """gpt-oss: one more column that takes weight and gives none."""
    more = torch.cat([scores, sink[None, :, None, None].expand(8, 16, 256, 1)], -1)
    return more.softmax(-1)[..., :-1]


@program(*[normal(16, 8, 256, 64, dtype=BF16)] * 3, gradients=True)
def whole_attention_with_grouped_gates(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = (query @ key.transpose(-1, -2)).float() * 0.125
    return torch.sigmoid(scores - 5.5).to(value.dtype) @ value


@program(*[normal(16, 8, 512, 64)] * 2, gradients=True)
def features_of_linear_attention_trained(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    q, k = F.elu(query) + 1, F.elu(key) + 1
    total = k.sum(2, keepdim=True)
    return q / ((q * total).sum(-1, keepdim=True) + 1e-6), k


@program(*[normal(8, 512, 16, 64, dtype=BF16)] * 2, normal(512, 32), gradients=True)
def rotated_query_and_key(query: Tensor, key: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    cosine, sine = (one.detach()[None, :, None].to(query.dtype) for one in (angle.cos(), angle.sin()))

    def turned(x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)

    return turned(query), turned(key)


@program(normal(16, 1024, 8, 64), normal(1024, 32), gradients=True)
def rotated_pairs_of_neighbours(x: Tensor, angle: Tensor) -> Tensor:
    a, b = x.unflatten(-1, (32, 2)).unbind(-1)
    cosine, sine = angle.detach().cos()[:, None], angle.detach().sin()[:, None]
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], -1).flatten(-2).transpose(1, 2)


@program(normal(16, 512, 3, 12, 64, dtype=BF16), normal(64, dtype=BF16), normal(64, dtype=BF16), gradients=True)
def normed_query_and_key_of_one_projection(qkv: Tensor, q_weight: Tensor, k_weight: Tensor) -> tuple[Tensor, ...]:
    query, key, value = qkv.unbind(2)
    query, key = F.rms_norm(query, (64,), q_weight, 1e-6), F.rms_norm(key, (64,), k_weight, 1e-6)
    return tuple(one.transpose(1, 2) for one in (query, key, value))


@program(normal(8, 16, 256, 256, dtype=BF16), normal(8, 16, 256, 256, dtype=BF16), normal(16), gradients=True)
def difference_of_two_softmaxes(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    share = torch.sigmoid(weight)[:, None, None].to(first.dtype)
    return first.softmax(-1) - share * second.softmax(-1)


@program(normal(16, 8, 512, 64), normal(16, 8, 512, 64), normal(8), gradients=True)
def cosine_attention_scale(query: Tensor, key: Tensor, log_scale: Tensor) -> tuple[Tensor, Tensor]:
    scale = log_scale.clamp(max=4.6).exp()[:, None, None]
    return F.normalize(query, dim=-1) * scale, F.normalize(key, dim=-1)


@program(normal(32, 256, 1024), normal(1024), gradients=True)
def attention_pooling_of_tokens(x: Tensor, query: Tensor) -> Tensor:
    weight = ((x * query).sum(-1) / 32.0).softmax(1)
    return (weight[..., None] * x).sum(1)


@program(normal(4, 4, 32, 32), normal(4, 1, 1, 32), gradients=True)
def small_masked_softmax(scores: Tensor, bias: Tensor) -> Tensor:
    return (scores + 3 * bias).softmax(-1)
