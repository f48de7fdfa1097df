"""What surrounds the products of attention, and attention to one query."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, positive, program


@program(normal(8, 16, 512, 512, dtype=BF16))
def softmax_with_linear_biases(scores: Tensor) -> Tensor:
    place = torch.arange(512, device=scores.device)
    slopes = 2.0 ** (-0.5 * torch.arange(1, 17, device=scores.device))
    distance = (place[None, :] - place[:, None]).clamp(max=0)
    biased = scores.float() + slopes[:, None, None] * distance
    return torch.softmax(biased.masked_fill(distance == 0, -1e4), -1).to(scores.dtype)


@program(normal(4, 8, 1024, 1024))
def softmax_in_a_sliding_window(scores: Tensor) -> Tensor:
    row, column = torch.arange(1024, device=scores.device)[:, None], torch.arange(1024, device=scores.device)
    seen = (column <= row) & (column > row - 128)
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)


@program(normal(4, 16, 1024, 1024, dtype=BF16))
def causal_softmax_of_capped_scores(scores: Tensor) -> Tensor:
    capped = 50.0 * torch.tanh(scores / 50.0)
    causal = torch.ones(1024, 1024, dtype=torch.bool, device=scores.device).tril()
    return torch.softmax(torch.where(causal, capped, torch.finfo(torch.bfloat16).min), -1)


@program(normal(8, 32, 256, 512, dtype=BF16), normal(32, dtype=BF16))
def softmax_with_a_sink(scores: Tensor, sink: Tensor) -> Tensor:
    beside = sink[None, :, None, None].expand(8, 32, 256, 1)
    return torch.softmax(torch.cat((scores, beside), -1), -1)[..., :-1]


@program(normal(16, 8, 2048, 64, dtype=BF16), normal(16, 8, 4, 64, dtype=BF16), index(1, high=2000))
def keys_written_to_a_cache(cache: Tensor, keys: Tensor, place: Tensor) -> Tensor:
    return cache.index_copy(2, place + torch.arange(4, device=cache.device), keys)


@program(normal(4, 8, 2048, 128, dtype=BF16), normal(4, 8, 2048, 128, dtype=BF16))
def keys_and_values_for_groups_of_heads(k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return tuple(one[:, :, None].expand(4, 8, 4, 2048, 128).reshape(4, 32, 2048, 128) for one in (k, v))


@program(normal(16, 32, 1, 128, dtype=BF16), *[normal(16, 32, 1024, 128, dtype=BF16)] * 2)
def attention_to_one_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q.float() * k.float()).sum(-1) * 128**-0.5
    return (torch.softmax(scores, -1)[..., None] * v.float()).sum(2).to(q.dtype)


@program(normal(8, 16, 1024, 64), normal(8, 16, 1024, 64))
def features_of_linear_attention(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q / (q * k.sum(2, keepdim=True)).sum(-1, keepdim=True), k


@program(normal(4, 16, 512, 1023))
def shifted_relative_scores(scores: Tensor) -> Tensor:
    b, h, rows, columns = scores.shape
    shifted = F.pad(scores, (1, 0)).view(b, h, columns + 1, rows)[:, :, 1:]
    return shifted.reshape(b, h, rows, columns)[..., :rows] * 0.125


@program(normal(256, 12, 49, 49, dtype=F16), normal(169, 12, dtype=F16), index(49 * 49, high=169), mask(64, 49, 49))
def window_scores_with_a_table(scores: Tensor, table: Tensor, place: Tensor, hidden: Tensor) -> Tensor:
    bias = table[place].view(49, 49, 12).permute(2, 0, 1)
    windows = (scores + bias).view(4, 64, 12, 49, 49).masked_fill(hidden[:, None], -100.0)
    return torch.softmax(windows.view(256, 12, 49, 49), -1)


@program(*[normal(8, 16, 1024, 64, dtype=F16)] * 2, positive(16))
def cosine_queries_and_keys(q: Tensor, k: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    return F.normalize(q, dim=-1) * scale.clamp(max=100).to(q.dtype)[:, None, None], F.normalize(k, dim=-1)


@program(normal(8, 64, 32, 256), normal(8, 64, 32))
def parts_of_attention_joined(parts: Tensor, logarithms: Tensor) -> Tensor:
    largest = logarithms.amax(0, keepdim=True)
    weight = torch.exp(logarithms - largest)
    return (parts * weight[..., None]).sum(0) / weight.sum(0)[..., None]


@program(normal(8, 16, 512, 512))
def entropy_of_attention(scores: Tensor) -> Tensor:
    chances = torch.softmax(scores, -1)
    return -(chances * torch.log(chances + 1e-9)).sum(-1).mean((0, 2))


@program(normal(2048, 16, 8, 64, dtype=BF16), index(32, 48, high=2048))
def pages_of_a_cache(pages: Tensor, table: Tensor) -> Tensor:
    return pages[table].flatten(1, 2).transpose(1, 2).contiguous()


@program(normal(8, 8, 512, 16), normal(8, 8, 512, 16))
def running_sum_of_outer_products(k: Tensor, v: Tensor) -> Tensor:
    return (k[..., :, None] * v[..., None, :]).cumsum(2)


@program(normal(4, 3 * 1024, 2048, dtype=BF16), normal(3 * 1024, dtype=BF16))
def heads_from_one_projection(qkv: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    wide = (qkv.transpose(1, 2) + bias).view(4, 2048, 3, 16, 64).permute(2, 0, 3, 1, 4)
    return (wide[0] * 0.125).contiguous(), wide[1].contiguous(), wide[2].contiguous()


@program(normal(1, 8, 1, 64), normal(1, 8, 100, 64), normal(1, 8, 100, 64))
def attention_of_a_small_decoder(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (torch.softmax((q * k).sum(-1) * 0.125, -1)[..., None] * v).sum(2)


@program(normal(8, 16, 512, 512, dtype=BF16), index(8, 512, high=6))
def softmax_within_documents(scores: Tensor, document: Tensor) -> Tensor:
    same = document[:, None, :, None] == document[:, None, None, :]
    return torch.softmax(scores.float().masked_fill(~same, -1e9), -1).to(scores.dtype)
