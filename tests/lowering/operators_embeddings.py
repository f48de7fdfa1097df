"""The table's part of embeddings."""

from __future__ import annotations

from collections.abc import Callable
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


def _bags(table: Tensor, tokens: Tensor) -> Tensor:
    return F.embedding_bag(tokens, table)


OPERATORS = [*GRADIENTS, Operator("embedding_bag", _bags, lambda d: _tokens(d)[:1], (torch.float32,), falls_back=True)]
