"""Losses of boxes, masks and heatmaps, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import index, mask, normal, program, uniform


def _corners(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Lower and upper corners of boxes given by centres and logarithms of sizes."""
    half = boxes[..., 2:].exp() / 2
    return boxes[..., :2] - half, boxes[..., :2] + half


@program(normal(1 << 20, 4), normal(1 << 20, 4), gradients=True)
def generalised_iou_loss(first: Tensor, second: Tensor) -> Tensor:
    (low, high), (other_low, other_high) = _corners(first), _corners(second.detach())
    inner = (torch.minimum(high, other_high) - torch.maximum(low, other_low)).clamp(min=0).prod(-1)
    union = (high - low).prod(-1) + (other_high - other_low).prod(-1) - inner
    hull = (torch.maximum(high, other_high) - torch.minimum(low, other_low)).prod(-1)
    return (1 - inner / union + (hull - union) / hull).mean()


@program(normal(1 << 20, 4), normal(1 << 20, 4), gradients=True)
def complete_iou_loss(first: Tensor, second: Tensor) -> Tensor:
    (low, high), (other_low, other_high) = _corners(first), _corners(second.detach())
    inner = (torch.minimum(high, other_high) - torch.maximum(low, other_low)).clamp(min=0).prod(-1)
    iou = inner / ((high - low).prod(-1) + (other_high - other_low).prod(-1) - inner)
    hull = (torch.maximum(high, other_high) - torch.minimum(low, other_low)).square().sum(-1)
    apart = (first[..., :2] - second.detach()[..., :2]).square().sum(-1) / hull
    angles = torch.atan((first[..., 2] - first[..., 3]).exp()) - torch.atan((second[..., 2] - second[..., 3]).exp())
    shape = 0.4052847 * angles.square()
    return (1 - iou + apart + (shape / (1 - iou + shape)).detach() * shape).mean()


@program(normal(8, 20000, 80), mask(8, 20000, 80), gradients=True)
def dense_focal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    target = labels.to(logits.dtype)
    p = logits.sigmoid()
    p_t = p * target + (1 - p) * (1 - target)
    weight = (0.25 * target + 0.75 * (1 - target)) * (1 - p_t) ** 2
    return (F.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight).sum() / 1000


@program(normal(8, 20000, 40), uniform(8, 20000, 40), gradients=True)
def quality_focal_loss(logits: Tensor, quality: Tensor) -> Tensor:
    apart = (quality.detach() - logits.sigmoid()).abs().square()
    return (F.binary_cross_entropy_with_logits(logits, quality.detach(), reduction="none") * apart).sum((1, 2))


@program(normal(60000, 4, 16), uniform(60000, 4), gradients=True)
def distribution_focal_loss(logits: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    wanted = place.detach() * 14.9
    left = wanted.long()
    weight = left + 1 - wanted
    log_p = F.log_softmax(logits, -1)
    low = log_p.gather(-1, left[..., None]).squeeze(-1)
    high = log_p.gather(-1, left[..., None] + 1).squeeze(-1)
    expected = (log_p.exp() * torch.arange(16, device=logits.device)).sum(-1)
    return -(low * weight + high * (1 - weight)).mean(), expected


@program(normal(8, 80, 128, 128), uniform(8, 80, 128, 128), gradients=True)
def heatmap_focal_loss(logits: Tensor, truth: Tensor) -> Tensor:
    p = logits.sigmoid().clamp(1e-4, 1 - 1e-4)
    is_peak = truth.detach() > 0.99
    near = (1 - p).square() * p.log()
    far = (1 - truth.detach()) ** 4 * p.square() * (1 - p).log()
    return -torch.where(is_peak, near, far).sum() / is_peak.sum().clamp(min=1)


@program(normal(6, 4, 384, 384), index(6, 384, 384, high=4), gradients=True)
def dice_loss_of_classes(logits: Tensor, target: Tensor) -> Tensor:
    p = logits.softmax(1)
    truth = F.one_hot(target, 4).permute(0, 3, 1, 2)
    both = (p * truth).sum((2, 3))
    return 1 - ((2 * both + 1) / (p.sum((2, 3)) + truth.sum((2, 3)) + 1)).mean()


@program(normal(64, 1, 512, 512), mask(64, 1, 512, 512), gradients=True)
def tversky_and_bce_of_masks(logits: Tensor, labels: Tensor) -> Tensor:
    truth = labels.to(logits.dtype)
    p = logits.sigmoid()
    hit, false, missed = ((a * b).sum((1, 2, 3)) for a, b in ((p, truth), (p, 1 - truth), (1 - p, truth)))
    return (1 - (hit + 1) / (hit + 0.3 * false + 0.7 * missed + 1)).mean() + F.binary_cross_entropy_with_logits(
        logits, truth
    )


@program(normal(4, 64, 64, 64, 2), normal(4, 64, 64, 64, 1), gradients=True)
def volumetric_dice_and_boundary(logits: Tensor, distance: Tensor) -> Tensor:
    p = logits.softmax(-1)[..., 1]
    truth = (distance.detach().squeeze(-1) < 0).to(p.dtype)
    dice = 1 - (2 * (p * truth).sum((1, 2, 3)) + 1) / (p.square().sum((1, 2, 3)) + truth.sum((1, 2, 3)) + 1)
    return dice.mean() + 0.01 * (p * distance.detach().squeeze(-1)).mean()


@program(normal(65536, 17, 2), normal(65536, 17, 2), uniform(65536), uniform(17), gradients=True)
def keypoint_similarity_loss(points: Tensor, truth: Tensor, area: Tensor, spread: Tensor) -> Tensor:
    d = (points - truth.detach()).square().sum(-1)
    scale = 2 * (area.detach()[:, None] + 0.1) * (spread.detach() + 0.1).square()
    return (1 - torch.exp(-d / scale)).mean()


@program(normal(8, 100, 4096), mask(8, 100, 4096), gradients=True)
def mask_point_losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    truth = labels.to(logits.dtype)
    bce = F.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(-1).sum()
    p = logits.sigmoid()
    return bce, (1 - (2 * (p * truth).sum(-1) + 1) / (p.sum(-1) + truth.sum(-1) + 1)).sum()
