"""Bags of embeddings whose offsets end with the number of tokens."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusionscope
from compiler.lowering.embeddings import MEAN, embedding_bag_backward


def _inputs(device: str) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(9, 5, generator=generator).to(device).requires_grad_()
    return table, torch.tensor([1, 2, 4, 5, 4, 8], device=device), torch.tensor([0, 4, 4, 6], device=device)


def _means(table: Tensor, tokens: Tensor, offsets: Tensor) -> Tensor:
    return F.embedding_bag(tokens, table, offsets, mode="mean", include_last_offset=True)


@pytest.mark.parametrize("counted_behind", [(), (0,)])
def test_the_gradient_of_means_takes_the_sizes_of_either_kernel(counted_behind: tuple[int, ...]) -> None:
    """The kernel for GPUs counts the tokens behind the last offset, that for CPUs does not."""
    table, tokens, offsets = _inputs("cpu")
    bags, sizes = torch.tensor([0, 0, 0, 0, 2, 2]), torch.tensor([4, 0, 2, *counted_behind])
    means = _means(table, tokens, offsets)
    (expected,) = torch.autograd.grad(means.square().sum(), table)
    given = embedding_bag_backward(2 * means.detach(), tokens, offsets, bags, sizes, sizes, 9, False, MEAN, False, None)
    torch.testing.assert_close(given, expected)


@pytest.mark.gpu
def test_a_training_step_on_a_gpu() -> None:
    table, tokens, offsets = _inputs("cuda")
    compiled = torch.compile(_means, backend=fusionscope)
    (given,) = torch.autograd.grad(compiled(table, tokens, offsets).square().sum(), table)
    (expected,) = torch.autograd.grad(_means(table, tokens, offsets).square().sum(), table)
    torch.testing.assert_close(given, expected)
