"""The table's part of embeddings and bags of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values
from tests.lowering.operators_scatter import places


def _tokens(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return [(values(dtype, 9, 5), places(4, 3, below=9)), (values(dtype, 9, 5), places(0, below=9))]


def _gradient_of_embedding(**keywords: Any) -> Callable[..., Tensor]:
    def function(table: Tensor, tokens: Tensor) -> Tensor:
        found = F.embedding(tokens, table, **keywords)
        return torch.ops.aten.embedding_dense_backward(
            found * found, tokens, 9, keywords.get("padding_idx", -1), keywords.get("scale_grad_by_freq", False)
        )

    return function


def _renormalised(table: Tensor, tokens: Tensor, norm: float) -> Tensor:
    return F.embedding(tokens, torch.ops.aten.embedding_renorm(table, tokens, 3.0, norm))


GRADIENTS = [
    Operator("embedding.gradient", _gradient_of_embedding(), _tokens, FLOATS),
    Operator("embedding.gradient.padding", _gradient_of_embedding(padding_idx=3), _tokens, FLOATS),
    Operator("embedding.gradient.frequency", _gradient_of_embedding(scale_grad_by_freq=True), _tokens, FLOATS),
    Operator("embedding.max_norm", lambda table, tokens: _renormalised(table, tokens, 2.0), _tokens, FLOATS),
    Operator("embedding.max_norm.1", lambda table, tokens: _renormalised(table, tokens, 1.0), _tokens, FLOATS),
]


def _bags(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(table, tokens, where each bag starts, a factor for each token): some bags are empty, the last one too."""
    table, tokens, factors = values(dtype, 9, 5), places(20, below=9), values(dtype, 20, seed=1)
    starts = torch.tensor([0, 3, 3, 11, 20])
    return [
        (table, tokens, starts, factors),
        (table.t().contiguous().t(), tokens.int(), starts[:4].int(), factors),
        (table, tokens[:0], starts[:1], factors[:0]),
    ]


def _bag(**keywords: Any) -> Callable[..., Any]:
    """The bags, and the gradients of the table and, where there are some, the factors."""
    with_factors = keywords.pop("with_factors", False)

    def forward(tokens: Tensor, starts: Tensor, table: Tensor, factors: Tensor | None = None) -> Tensor:
        return F.embedding_bag(tokens, table, starts, per_sample_weights=factors, **keywords)

    def function(table: Tensor, tokens: Tensor, starts: Tensor, factors: Tensor) -> Any:
        inputs = (table, factors) if with_factors else (table,)
        pulled: Any = torch.func.vjp(partial(forward, tokens, starts), *inputs)
        result, pull_back = pulled
        return result, *pull_back(result * 2 + 1)

    return function


def _even(**keywords: Any) -> Callable[..., Any]:
    """Bags that are rows of a matrix."""
    return lambda table, tokens, _, factors: F.embedding_bag(tokens.view(4, -1), table, **keywords)


def _for_gradients(way: int, dtype: torch.dtype) -> Operator:
    """What a bag gives besides the bags themselves."""

    def function(table: Tensor, tokens: Tensor, starts: Tensor, _: Tensor) -> tuple[Tensor, ...]:
        return torch.ops.aten._embedding_bag(table, tokens, starts, False, way)

    return Operator(f"embedding_bag.for_gradients.{WAYS[way]}", function, _bags, (dtype,))


WAYS = ("sum", "mean", "max")
BAGS = [
    *(Operator(f"embedding_bag.{way}", _bag(mode=way), _bags, FLOATS) for way in WAYS),
    *(Operator(f"embedding_bag.{way}.padding", _bag(mode=way, padding_idx=3), _bags, FLOATS) for way in WAYS),
    *(
        Operator(f"embedding_bag.{way}.ends", _bag(mode=way, include_last_offset=True), lambda d: _bags(d)[:1], FLOATS)
        for way in WAYS
    ),
    Operator("embedding_bag.even", _even(mode="sum"), lambda d: _bags(d)[:1], FLOATS),
    Operator("embedding_bag.even.padding", _even(mode="mean", padding_idx=3), lambda d: _bags(d)[:2], FLOATS),
    Operator("embedding_bag.factors", _bag(mode="sum", with_factors=True), _bags, FLOATS, falls_back=True),
    Operator(
        "embedding_bag.factors.padding",
        _bag(mode="sum", with_factors=True, padding_idx=3),
        _bags,
        FLOATS,
        falls_back=True,
    ),
    *(_for_gradients(way, torch.float32) for way in range(len(WAYS))),
    # PyTorch's own kernel for CPUs takes the frequencies of other tokens, so there it stays a call of that.
    Operator("embedding_bag.frequency", _bag(mode="sum", scale_grad_by_freq=True), _bags, FLOATS, falls_back=True),
]

OPERATORS = [*GRADIENTS, *BAGS]
