"""What a mask that is the same in each call amounts to, when it is all that a softmax has to leave out by."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from compiler.fx.fake_values import outside_fake_mode
from compiler.passes.rewrite.repeated import distinct


def is_low_enough(fill: float, dtype: torch.dtype) -> bool:
    """Whether a masked score weighs nothing beside any other: minus infinity, or a number that is so low that the
    dtype's numbers near it are at least 1 apart, so that a row of such scores could not tell its weights anyway."""
    if fill == -math.inf:
        return True
    return fill < 0 and -fill * torch.finfo(dtype).eps >= 1


def attended_by(known: Tensor) -> Tensor | None:
    """Where scores count, for a boolean mask or for one that is added: zeros, and one number that is low enough. None
    for what is no mask. Both are told from what is distinct; shape as given, with the size one where it repeats."""
    with outside_fake_mode():
        known = distinct(known)
        if known.dtype == torch.bool:
            return known
        if not known.is_floating_point() or not known.numel():
            return None
        attended = known == 0
        fill = float(known.min())
        is_mask = bool((attended | (known == fill)).all()) and (fill == 0 or is_low_enough(fill, known.dtype))
        return attended if is_mask else None


def leaves_nothing_out(attended: Tensor) -> bool:
    with outside_fake_mode():
        return bool(attended.all())


def leaves_no_row_empty(attended: Tensor) -> bool:
    """Whether each query attends to something."""
    with outside_fake_mode():
        return bool(attended.any(-1).all()) if attended.dim() else bool(attended)


def is_lower_triangle(attended: Tensor, queries: Any, keys: Any) -> bool:
    """Whether query i attends to the keys up to i and to no other, in every head of every sequence: what `is_causal`
    means, also where there are not as many keys as queries."""
    if not isinstance(queries, int) or not isinstance(keys, int) or attended.shape[-2:] != (queries, keys):
        return False
    with outside_fake_mode():
        triangle = torch.ones(queries, keys, dtype=torch.bool, device="cpu").tril()
        return attended.dim() >= 2 and bool((attended == triangle).all())
