"""The loss of several labels, as a function of ATen's other operators.

PyTorch has a decomposition of its own in front of autograd. Up to torch 2.13 it goes on behind the -1 that ends a row's
labels, with the first class for each place: the loss of one label among five classes is five times too large.
"""

from __future__ import annotations

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten


@decomposes(aten.multilabel_margin_loss_forward)
def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """For each row, by how much less than one its labels' scores are above each other class's, over the number of
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
