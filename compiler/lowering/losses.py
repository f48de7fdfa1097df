"""Losses whose decompositions by PyTorch are wrong, as functions of ATen's other operators."""

from __future__ import annotations

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten


@decomposes(aten.multilabel_margin_loss_forward)
def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """PyTorch has its decomposition in front of autograd. Up to torch 2.13 it goes on behind the -1 that ends a row's
    labels, with the first class for each position: the loss of one label among five classes is five times too large.

    For each row, by how much less than one its labels' scores are above each other class's, over the number of
    classes: of each row, the mean, or the sum (0, 1, 2). And which classes are labels, in x's dtype."""
    scores, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    count = scores.shape[1]
    classes = torch.arange(count, device=x.device)
    is_label = classes < torch.where(labels == -1, classes, count).amin(1, keepdim=True)
    is_target = ((classes == labels.unsqueeze(2)) & is_label.unsqueeze(2)).any(1)
    of_labels = scores.gather(1, torch.where(is_label, labels, 0))
    missing = (1 - of_labels.unsqueeze(2) + scores.unsqueeze(1)).relu()
    counts = is_label.unsqueeze(2) & ~is_target.unsqueeze(1)
    losses = torch.where(counts, missing, 0).sum((1, 2)) / count
    loss = losses.reshape(x.shape[:-1]) if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()
    return loss, is_target.to(x.dtype).reshape(target.shape)


@decomposes(aten.smooth_l1_loss_backward)
def gradient_of_smooth_l1_loss(gradient: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    """Of x. PyTorch's takes the sign of a difference that is NaN, which is zero."""
    of_each = gradient / x.numel() if reduction == 1 else gradient
    return of_each * ((x - target) / beta).clamp(-1, 1)
