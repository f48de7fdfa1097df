"""The table's part of embeddings."""

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


def _gradient(table: Tensor, tokens: Tensor, padding: int) -> Tensor:
    found = F.embedding(tokens, table)
    gradient: Tensor = torch.ops.aten.embedding_dense_backward(found * found, tokens, 9, padding, False)
    return gradient


def _bags(mode: str) -> Callable[..., Any]:
    """Bags of four tokens, and the gradient of the table."""

    def function(table: Tensor, tokens: Tensor) -> Any:
        pulled: Any = torch.func.vjp(lambda table: F.embedding_bag(tokens.view(-1, 4), table, mode=mode), table)
        result, pull_back = pulled
        return result, *pull_back(result * 2 + 1)

    return function


OPERATORS = [
    Operator("embedding.gradient", partial(_gradient, padding=-1), _tokens, FLOATS),
    Operator("embedding.gradient.padding", partial(_gradient, padding=3), _tokens, FLOATS),
    *(Operator(f"embedding_bag.{mode}", _bags(mode), lambda d: _tokens(d)[:1], FLOATS) for mode in ("sum", "mean")),
    Operator("embedding_bag.max", _bags("max"), lambda d: _tokens(d)[:1], (torch.float32,), falls_back=True),
]
