"""Distances between rows of matrices, and products of three tensors that are summed at once, as functions of ATen's
other operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten


@decomposes(aten._cdist_forward)
def distances(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norm of x[..., i, :] - y[..., j, :] for every i and j."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    if p != inf:
        return torch.linalg.vector_norm(difference, p, -1)
    return difference.abs().amax(-1) if x.shape[-1] else difference.sum(-1)


@decomposes(aten._trilinear)
def product_of_three(
    a: Tensor, b: Tensor, c: Tensor, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int],
    sumdim: Sequence[int], unroll_dim: int = 1,
) -> Tensor:  # fmt: skip
    """The sum over `sumdim` of the product of the three, each with new dimensions where `expand` says."""
    factors = []
    for factor, expanded in ((a, expand1), (b, expand2), (c, expand3)):
        for dim in sorted(expanded):
            factor = factor.unsqueeze(dim)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return product.sum(list(sumdim)) if sumdim else product
