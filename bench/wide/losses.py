"""Losses of classification, forward and backward, as people train with them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, program, uniform


@program(normal(4096, 8192, dtype=BF16), index(4096, high=8192), gradients=True)
def cross_entropy_smoothed(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits.float(), target, label_smoothing=0.1)


@program(normal(4096, 5003), index(4096, high=5003), gradients=True)
def cross_entropy_ignoring_padding(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, torch.where(target % 8 == 0, -100, target), ignore_index=-100)


@program(normal(16384, 1000, dtype=F16), index(16384, high=1000), uniform(1000), gradients=True)
def cross_entropy_class_weights(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    return F.cross_entropy(logits.float(), target, weight=weight.detach().to(torch.float32))


@program(normal(8, 21, 256, 256), index(8, 256, 256, high=21), gradients=True)
def segmentation_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, target, ignore_index=0)


@program(normal(16, 3, 384, 384), index(16, 384, 384, high=3), gradients=True)
def segmentation_three_classes_per_pixel(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, target, reduction="none")


@program(normal(16384, 1000), normal(16384, 1000), gradients=True)
def cross_entropy_soft_targets(logits: Tensor, teacher: Tensor) -> Tensor:
    return F.cross_entropy(logits, teacher.detach().softmax(-1))


@program(normal(1024, 16384, dtype=BF16), index(1024, high=16384), gradients=True)
def cross_entropy_with_z_loss(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    wide = logits.float()
    log_sum = wide.logsumexp(-1)
    picked = wide.gather(-1, target[:, None]).squeeze(-1)
    return (log_sum - picked).mean(), 1e-4 * log_sum.square().mean()


@program(normal(2048, 256, dtype=BF16), normal(8192, 256, dtype=BF16), index(2048, high=8192), gradients=True)
def chunked_cross_entropy_of_a_head(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    losses = [
        F.cross_entropy((rows @ weight.T).float(), words, reduction="sum")
        for rows, words in zip(hidden.chunk(4), target.chunk(4), strict=True)
    ]
    return torch.stack(losses).sum() / target.numel()


@program(normal(4096, 4096, dtype=BF16), normal(4096, 4096, dtype=BF16), gradients=True)
def distillation_with_temperature(student: Tensor, teacher: Tensor) -> Tensor:
    learned = F.log_softmax(student.float() / 4.0, -1)
    taught = F.log_softmax(teacher.detach().float() / 4.0, -1)
    return F.kl_div(learned, taught, reduction="batchmean", log_target=True) * 16.0


@program(normal(8192, 1000), normal(8192, 1000), index(8192, high=1000), gradients=True)
def distillation_and_labels(student: Tensor, teacher: Tensor, target: Tensor) -> Tensor:
    taught = F.softmax(teacher.detach() / 2.0, -1)
    soft = -(taught * F.log_softmax(student / 2.0, -1)).sum(-1).mean() * 4.0
    return 0.3 * F.cross_entropy(student, target) + 0.7 * soft


@program(normal(16384, 512), index(16384, high=512), gradients=True)
def focal_loss_of_classes(logits: Tensor, target: Tensor) -> Tensor:
    log_p = F.log_softmax(logits, -1).gather(1, target[:, None]).squeeze(1)
    return (-((1 - log_p.exp()) ** 2) * log_p).mean()


@program(normal(65536, 80), mask(65536, 80), uniform(80), gradients=True)
def multilabel_bce_pos_weight(logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), pos_weight=weight.detach() + 1)


@program(normal(32768, 200), mask(32768, 200), gradients=True)
def asymmetric_multilabel_loss(logits: Tensor, labels: Tensor) -> Tensor:
    p = torch.sigmoid(logits)
    negative = (1 - p + 0.05).clamp(max=1.0)
    good = torch.where(labels, p, negative).clamp(min=1e-8)
    exponent = torch.where(labels, 1.0, 4.0)
    return -(good.log() * (1 - good) ** exponent).sum(-1).mean()


@program(normal(16384, 777), index(16384, high=777), gradients=True)
def poly_one_loss(logits: Tensor, target: Tensor) -> Tensor:
    p = logits.softmax(-1).gather(1, target[:, None]).squeeze(1)
    return F.cross_entropy(logits, target, reduction="none") + 2.0 * (1 - p)


@program(normal(16384, 1024), index(16384, high=1024), gradients=True)
def generalised_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    p = F.softmax(logits, 1).gather(1, target[:, None]) + 1e-6
    return ((1 - p**0.7) / 0.7).mean()


@program(normal(16384, 1024, dtype=BF16), index(16384, high=1024), gradients=True)
def symmetric_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    wide = logits.float()
    one_hot = F.one_hot(target, 1024).to(wide.dtype).clamp(min=1e-4)
    return F.cross_entropy(wide, target) - 0.5 * (wide.softmax(-1) * one_hot.log()).sum(-1).mean()


@program(normal(6, 512, 4000, dtype=BF16), index(6, 512, high=4000), mask(6, 512), gradients=True)
def sequence_nll_by_sequence(logits: Tensor, words: Tensor, kept: Tensor) -> Tensor:
    log_p = logits[:, :-1].float().log_softmax(-1).gather(-1, words[:, 1:, None]).squeeze(-1)
    weight = kept[:, 1:].to(log_p.dtype)
    return -(log_p * weight).sum(-1) / weight.sum(-1).clamp(min=1.0)


@program(normal(16384, 1500), gradients=True)
def entropy_of_predictions(logits: Tensor) -> Tensor:
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1).mean()


@program(normal(16384, 900), index(16384, high=900), gradients=True)
def squared_hinge_of_classes(scores: Tensor, target: Tensor) -> Tensor:
    right = scores.gather(1, target[:, None])
    margins = F.relu(scores - right + 1.0).square()
    return (margins.sum(1) - 1.0).mean()


@program(normal(8192, 2000), uniform(2000), index(8192, high=2000), gradients=True)
def logit_adjusted_cross_entropy(logits: Tensor, prior: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits + (prior.detach() + 0.01).log(), target)


@program(normal(65536, 100), index(65536, high=100), gradients=True)
def evidential_dirichlet_loss(logits: Tensor, target: Tensor) -> Tensor:
    alpha = F.softplus(logits) + 1
    strength = alpha.sum(-1, keepdim=True)
    p = alpha / strength
    error = (F.one_hot(target, 100) - p).square() + p * (1 - p) / (strength + 1)
    return error.sum(-1).mean()


@program(normal(131072, 1), normal(63), index(131072, high=64), gradients=True)
def ordinal_coral_loss(score: Tensor, biases: Tensor, rank: Tensor) -> Tensor:
    logits = score + biases
    above = (rank[:, None] > torch.arange(63, device=rank.device)).to(logits.dtype)
    return -(F.logsigmoid(logits) * above + (F.logsigmoid(logits) - logits) * (1 - above)).sum(1).mean()


@program(normal(2048, 16000, dtype=BF16), index(2048, high=16000), gradients=True)
def cross_entropy_of_capped_logits(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(30.0 * torch.tanh(logits.float() / 30.0), target)


@program(normal(8192, 1000), normal(8192, 1000), gradients=True)
def jensen_shannon_of_two_heads(first: Tensor, second: Tensor) -> Tensor:
    p, q = first.softmax(-1), second.softmax(-1)
    middle = ((p + q) / 2).log()
    return 0.5 * (F.kl_div(middle, p, reduction="batchmean") + F.kl_div(middle, q, reduction="batchmean"))


@program(normal(8192, 100), normal(8192, 1000), index(8192, high=100), index(8192, high=1000), gradients=True)
def coarse_and_fine_cross_entropy(coarse: Tensor, fine: Tensor, family: Tensor, kind: Tensor) -> Tensor:
    return F.cross_entropy(coarse, family) + 0.5 * F.cross_entropy(fine, kind)


@program(normal(4096, 512, dtype=F16), mask(4096, 512), gradients=True)
def listwise_top_one_loss(scores: Tensor, relevant: Tensor) -> Tensor:
    """ListNet's top-one cross entropy."""
    wanted = torch.softmax(relevant.to(torch.float32) * 2.0, -1)
    return -(wanted * F.log_softmax(scores.float(), -1)).sum(-1).mean()


@program(normal(1024, 128), uniform(1024, 128), gradients=True)
def pairwise_ranking_of_lists(scores: Tensor, relevance: Tensor) -> Tensor:
    """RankNet over all pairs of a list."""
    differences = scores[:, :, None] - scores[:, None, :]
    is_above = relevance.detach()[:, :, None] > relevance.detach()[:, None, :]
    return (F.softplus(-differences) * is_above).sum((1, 2)).mean()


@program(normal(256, 10), index(256, high=10), gradients=True)
def cross_entropy_of_a_small_batch(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits, target)
