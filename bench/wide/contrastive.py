"""Losses that compare samples with each other, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, normal, program, uniform


@program(normal(2048, 512, dtype=BF16), normal(2048, 512, dtype=BF16), normal(), gradients=True)
def clip_loss(images: Tensor, texts: Tensor, log_scale: Tensor) -> Tensor:
    x, y = F.normalize(images.float(), dim=-1), F.normalize(texts.float(), dim=-1)
    scores = log_scale.exp() * (x @ y.T)
    own = torch.arange(2048, device=images.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


@program(normal(2048, 2048), normal(), normal(), gradients=True)
def siglip_loss_of_scores(scores: Tensor, log_scale: Tensor, bias: Tensor) -> Tensor:
    signs = 2 * torch.eye(2048, device=scores.device, dtype=scores.dtype) - 1
    return -F.logsigmoid(signs * (log_scale.exp() * scores + bias)).sum() / 2048


@program(normal(4096, 4096), gradients=True)
def info_nce_both_ways_of_scores(scores: Tensor) -> Tensor:
    own = torch.arange(4096, device=scores.device)
    return (F.cross_entropy(scores / 0.07, own) + F.cross_entropy(scores.T / 0.07, own)) / 2


@program(normal(2048, 2048), index(2048, high=100), gradients=True)
def supervised_contrastive_of_scores(scores: Tensor, label: Tensor) -> Tensor:
    itself = torch.eye(2048, device=scores.device, dtype=torch.bool)
    same = (label[:, None] == label[None, :]) & ~itself
    log_p = scores - scores.masked_fill(itself, -torch.inf).logsumexp(1, keepdim=True)
    return -((log_p * same).sum(1) / same.sum(1).clamp(min=1)).mean()


@program(normal(16384, 256), normal(16384, 256), normal(16384, 256), gradients=True)
def triplet_loss_of_distances(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    near = (anchor - positive + 1e-6).norm(dim=-1)
    far = (anchor - negative + 1e-6).norm(dim=-1)
    return F.softplus(near - far + 0.3).mean()


@program(normal(4096, 2048), gradients=True)
def variance_of_features_hinge(features: Tensor) -> Tensor:
    """VICReg's variance."""
    return F.relu(1.02 - torch.sqrt(features.var(0) + 1e-4)).mean()


@program(normal(4096, 4096), gradients=True)
def off_diagonal_of_correlations(correlations: Tensor) -> Tensor:
    """Barlow Twins, after the product."""
    c = correlations / 4096
    on = torch.diagonal(c)
    return (on - 1).square().sum() + 5e-3 * (c.square().sum() - on.square().sum())


@program(normal(2048, 1024), normal(2048, 1024), gradients=True)
def barlow_twins_with_batch_statistics(first: Tensor, second: Tensor) -> Tensor:
    a = (first - first.mean(0)) / (first.std(0) + 1e-5)
    b = (second - second.mean(0)) / (second.std(0) + 1e-5)
    c = a.T @ b / 2048
    apart = torch.eye(1024, device=c.device, dtype=c.dtype)
    return ((c - apart).square() * (apart + 5e-3 * (1 - apart))).sum()


@program(normal(8192, 2048, dtype=BF16), normal(8192, 2048, dtype=BF16), gradients=True)
def negative_cosine_of_predictions(predicted: Tensor, target: Tensor) -> Tensor:
    """SimSiam and BYOL: no gradient to the target."""
    return 2 - 2 * (F.normalize(predicted, dim=-1) * F.normalize(target.detach(), dim=-1)).sum(-1).mean()


@program(uniform(4096, 4096), index(4096, high=4096), gradients=True)
def arcface_margin_of_cosines(raw: Tensor, label: Tensor) -> Tensor:
    cosine = raw * 1.8 - 0.9
    sine = torch.sqrt(1 - cosine.square())
    turned = cosine * 0.8775826 - sine * 0.4794255
    is_own = label[:, None] == torch.arange(4096, device=label.device)
    return F.cross_entropy(64.0 * torch.where(is_own, turned, cosine), label)


@program(normal(8192, 1000, dtype=BF16), index(8192, high=1000), gradients=True)
def cosface_margin(cosine: Tensor, label: Tensor) -> Tensor:
    margin = F.one_hot(label, 1000) * 0.35
    return F.cross_entropy(30.0 * (cosine.float() - margin), label)


@program(normal(2, 384, 8192), normal(2, 384, 8192), normal(8192), gradients=True)
def dino_loss_with_centre(student: Tensor, teacher: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    taught = F.softmax((teacher.detach() - centre.detach()) / 0.04, -1)
    learned = F.log_softmax(student / 0.1, -1)
    new_centre = 0.9 * centre.detach() + 0.1 * teacher.detach().mean((0, 1))
    return -(taught.flip(0) * learned).sum(-1).mean(), new_centre


@program(normal(4096, 3000))
def three_steps_of_sinkhorn(scores: Tensor) -> Tensor:
    """SwAV's codes: sums of rows and columns made equal in turns."""
    codes = torch.exp(scores / 0.5)
    codes = codes / codes.sum()
    for _ in range(3):
        codes = codes / codes.sum(0, keepdim=True) / 3000
        codes = codes / codes.sum(1, keepdim=True) / 4096
    return codes * 4096


@program(normal(1024, 128), normal(1024, 128), normal(128, 8192), gradients=True)
def momentum_contrast_with_a_queue(query: Tensor, key: Tensor, queue: Tensor) -> Tensor:
    q, k = F.normalize(query, dim=1), F.normalize(key.detach(), dim=1)
    scores = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.detach()], 1) / 0.07
    return F.cross_entropy(scores, torch.zeros(1024, dtype=torch.int64, device=query.device))


@program(normal(2048, 2048), index(2048, high=64), gradients=True)
def circle_loss_of_similarities(similarity: Tensor, label: Tensor) -> Tensor:
    same = label[:, None] == label[None, :]
    s = similarity * 0.2
    apart = torch.where(same, -torch.inf, 32.0 * F.relu(s.detach() + 0.25) * (s - 0.25)).logsumexp(1)
    close = torch.where(same, -32.0 * F.relu(1.25 - s.detach()) * (s - 0.75), -torch.inf).logsumexp(1)
    return F.softplus(apart + close).mean()
