"""The table's part of embeddings."""

from __future__ import annotations

from functools import partial

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


def _bags(table: Tensor, tokens: Tensor) -> Tensor:
    return F.embedding_bag(tokens, table)


OPERATORS = [
    Operator("embedding.gradient", partial(_gradient, padding=-1), _tokens, FLOATS),
    Operator("embedding.gradient.padding", partial(_gradient, padding=3), _tokens, FLOATS),
    Operator("embedding_bag", _bags, lambda d: _tokens(d)[:1], (torch.float32,), falls_back=True),
]
