"""Scores to choices: words, beams, experts."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, program, uniform


@program(normal(16384, 64, dtype=BF16))
def two_experts_of_each_word(scores: Tensor) -> tuple[Tensor, Tensor]:
    weight, expert = torch.softmax(scores.float(), -1).topk(2, -1)
    return weight / weight.sum(-1, keepdim=True), expert


@program(normal(16384, 256), normal(256))
def sigmoid_gates_with_a_bias(scores: Tensor, bias: Tensor) -> Tensor:
    gates = scores.sigmoid()
    group = (gates + bias).view(16384, 8, 32).amax(-1)
    kept = group >= group.mean(-1, keepdim=True)
    return (gates.view(16384, 8, 32) * kept[..., None]).flatten(1)


@program(normal(65536, 64))
def balance_of_experts(scores: Tensor) -> Tensor:
    chances = torch.softmax(scores, -1)
    chosen = chances >= chances.amax(-1, keepdim=True)
    return (chances.mean(0) * chosen.float().mean(0)).sum() * 64


@program(index(65536, high=64))
def places_in_the_queues_of_experts(expert: Tensor) -> Tensor:
    chosen = (expert[:, None] == torch.arange(64, device=expert.device)).int()
    return ((chosen.cumsum(0) - 1) * chosen).sum(-1)


@program(normal(16384, 1024, dtype=BF16), index(32768, high=16384), uniform(32768))
def words_sent_to_experts(x: Tensor, word: Tensor, weight: Tensor) -> Tensor:
    return x[word] * weight[:, None].to(x.dtype)


@program(normal(16384, 2, 1024, dtype=BF16), uniform(16384, 2), normal(16384, 1024, dtype=BF16))
def answers_of_experts_joined(answers: Tensor, weight: Tensor, residual: Tensor) -> Tensor:
    return residual + (answers * weight[..., None]).sum(1).to(residual.dtype)


@program(normal(64, 50257), uniform(64, 50257))
def word_drawn_by_noise(scores: Tensor, noise: Tensor) -> Tensor:
    chances = torch.softmax(scores / 0.8, -1)
    return (chances / -torch.log(noise * 0.98 + 0.01)).amax(-1)


@program(normal(128, 32000, dtype=F16))
def words_within_a_share_of_the_best(scores: Tensor) -> Tensor:
    chances = torch.softmax(scores.float(), -1)
    return scores.masked_fill(chances < 0.05 * chances.amax(-1, keepdim=True), -torch.inf)


@program(normal(64, 32000))
def words_within_a_total_chance(scores: Tensor) -> Tensor:
    ordered, place = scores.sort(-1, descending=True)
    total = torch.softmax(ordered, -1).cumsum(-1)
    return torch.zeros_like(scores).scatter(-1, place, (0.9 - total).clamp(min=0))


@program(normal(256, 50257), index(256, 128, high=50257))
def repeated_words_punished(scores: Tensor, said: Tensor) -> Tensor:
    score = scores.gather(1, said)
    return scores.scatter(1, said, torch.where(score < 0, score * 1.2, score / 1.2)) / 0.7


@program(normal(32, 4, 32000), normal(32, 4))
def best_continuations_of_beams(scores: Tensor, so_far: Tensor) -> tuple[Tensor, Tensor]:
    total = (torch.log_softmax(scores, -1) + so_far[..., None]).flatten(1)
    best, place = total.topk(4, -1)
    return best, place // 32000


@program(normal(512, 50257, dtype=BF16), normal(50257), mask(50257))
def biased_words_and_banned_ones(scores: Tensor, bias: Tensor, banned: Tensor) -> Tensor:
    return torch.log_softmax((scores.float() + bias).masked_fill(banned, -1e9), -1)


@program(normal(128, 50257), normal(128, 50257))
def guided_scores(with_prompt: Tensor, without: Tensor) -> Tensor:
    a, b = torch.log_softmax(with_prompt, -1), torch.log_softmax(without, -1)
    return torch.log_softmax(b + 1.5 * (a - b), -1)


@program(normal(64, 8, 32000), normal(64, 8, 32000), index(64, 8, high=32000))
def chances_to_accept_a_draft(target: Tensor, draft: Tensor, word: Tensor) -> Tensor:
    wanted = torch.softmax(target, -1).gather(-1, word[..., None])
    offered = torch.softmax(draft, -1).gather(-1, word[..., None])
    return (wanted / offered).clamp(max=1).squeeze(-1).cumprod(-1)


@program(normal(1024, 50257, dtype=BF16))
def best_word_and_its_chance(scores: Tensor) -> tuple[Tensor, Tensor]:
    best = scores.float().amax(-1)
    return best, torch.exp(best - scores.float().logsumexp(-1))


@program(normal(1, 32000))
def temperature_for_one_word(scores: Tensor) -> Tensor:
    return torch.softmax(scores / 0.7, -1)


@program(normal(256, 32000))
def surprise_of_typical_words(scores: Tensor) -> Tensor:
    logarithm = torch.log_softmax(scores, -1)
    entropy = -(logarithm.exp() * logarithm).sum(-1, keepdim=True)
    return (-logarithm - entropy).abs()
