"""Sequences of different lengths: masks, segments, shifts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, program, uniform


@program(normal(256, 256, 768, dtype=BF16), mask(256, 256))
def mean_of_words_of_unit_length(x: Tensor, kept: Tensor) -> Tensor:
    weight = kept[..., None].to(x.dtype)
    return F.normalize((x * weight).sum(1) / weight.sum(1).clamp(min=1), dim=-1)


@program(normal(256, 512, 768, dtype=F16), index(256, high=512))
def last_word_of_each(x: Tensor, length: Tensor) -> Tensor:
    return torch.tanh(x[torch.arange(256, device=x.device), length])


@program(normal(1 << 20, 32), index(1 << 20, high=4096))
def sums_of_segments(x: Tensor, segment: Tensor) -> Tensor:
    return torch.zeros(4096, 32, device=x.device, dtype=x.dtype).index_add(0, segment, x * 0.5)


@program(normal(1 << 21), index(1 << 21, high=10000))
def means_of_segments(x: Tensor, segment: Tensor) -> Tensor:
    total = torch.zeros(10000, device=x.device, dtype=x.dtype).scatter_add(0, segment, x)
    count = torch.zeros(10000, device=x.device, dtype=x.dtype).scatter_add(0, segment, torch.ones_like(x))
    return (total / count.clamp(min=1))[segment]


@program(normal(128, 300, 500), index(128, high=300))
def zeros_beyond_the_length(x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    kept = torch.arange(300, device=x.device) < length[:, None]
    x = torch.where(kept[..., None], x, 0)
    return x, x.amax(1)


@program(index(4096, 2048, high=50257))
def words_shifted_to_the_right(word: Tensor) -> tuple[Tensor, Tensor]:
    shifted = F.pad(word[:, :-1], (1, 0), value=50256)
    return shifted, torch.where(word == 0, -100, word)


@program(uniform(8192, 1000))
def chance_to_be_alive(hazard: Tensor) -> tuple[Tensor, Tensor]:
    alive = torch.cumprod(1 - hazard * 0.01, 1)
    return alive, alive.sum(1)


@program(index(4096, 4096, high=20))
def places_within_runs(segment: Tensor) -> Tensor:
    first = F.pad(segment[:, 1:] != segment[:, :-1], (1, 0), value=True)
    place = torch.arange(4096, device=segment.device)
    return place - torch.where(first, place, 0).cummax(1).values


@program(normal(4096, 1000), index(4096, high=1000))
def reversed_up_to_the_length(x: Tensor, length: Tensor) -> Tensor:
    place = torch.arange(1000, device=x.device)
    back = torch.where(place < length[:, None], length[:, None] - 1 - place, place)
    return x.gather(1, back)


@program(normal(16, 2048, 1024, dtype=BF16), normal(1024, 4, dtype=BF16), normal(1024, dtype=BF16))
def short_causal_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    padded = F.pad(x, (0, 0, 3, 0))
    total = sum(padded[:, tap : tap + 2048] * weight[:, tap] for tap in range(4))
    return F.silu(total + bias)


@program(normal(8, 4096, 512), normal(512))
def words_mixed_with_the_one_before(x: Tensor, mix: Tensor) -> tuple[Tensor, Tensor]:
    before = F.pad(x, (0, 0, 1, -1))
    return x + (before - x) * mix, torch.sigmoid(x + (before - x) * (1 - mix))


@program(normal(4096, 4000))
def largest_of_blocks_of_time(x: Tensor) -> tuple[Tensor, Tensor]:
    blocks = x.view(4096, 200, 20)
    return blocks.amax(-1), blocks.mean(-1)


@program(normal(1 << 20), index(1 << 20, high=50000))
def softmax_within_segments(score: Tensor, segment: Tensor) -> Tensor:
    largest = torch.full((50000,), -1e4, device=score.device, dtype=score.dtype)
    largest = largest.scatter_reduce(0, segment, score, "amax")
    weight = torch.exp(score - largest[segment])
    total = torch.zeros(50000, device=score.device, dtype=score.dtype).index_add(0, segment, weight)
    return weight / total[segment]


@program(index(8192, 512, high=30000))
def hashes_of_three_words(word: Tensor) -> Tensor:
    return (word[:, :-2] * 31 + word[:, 1:-1] * 961 + word[:, 2:] * 29791) % 1000003


@program(index(65536, high=500), normal(65536))
def one_hot_and_value(kind: Tensor, value: Tensor) -> Tensor:
    return F.one_hot(kind, 500).to(value.dtype) * value[:, None]


@program(normal(4096, 2048, dtype=BF16))
def differences_and_second_ones(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.diff(dim=1), x.diff(n=2, dim=1)


@program(*[normal(32, 1024, 256)] * 3)
def three_kinds_of_tokens_in_turn(state: Tensor, action: Tensor, reward: Tensor) -> Tensor:
    return F.layer_norm(torch.stack((reward, state, action), 2).flatten(1, 2), (256,))


@program(index(32, 20, high=100), index(32, 20, high=100))
def share_of_equal_words(a: Tensor, b: Tensor) -> Tensor:
    return (a == b).float().mean(1)
