"""Embeddings: rows of a table chosen by tokens, and the gradient of that."""

from __future__ import annotations

from typing import Any

import torch

from compiler.lowering.advanced_index import index_in, wrapped_index
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten


@lowers(aten.embedding)
def embedding(
    build: Builder, weight: TensorValue, indices: TensorValue, padding_idx: int = -1,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> TensorValue:  # fmt: skip
    def element(position: Position) -> Any:
        row = wrapped_index(indices.load(position[:-1]), weight.shape[0])
        return weight.load((row, position[-1]))

    return build.pointwise((*indices.shape, weight.shape[1]), weight.dtype, element)


@lowers(aten.embedding_dense_backward)
def embedding_dense_backward(
    build: Builder, gradient: TensorValue, indices: TensorValue, num_weights: int, padding_idx: int,
    scale_grad_by_freq: bool,
) -> TensorValue:  # fmt: skip
    """Each row of the gradient is added to the row of the table that it was read from, but for the padding."""
    width = gradient.shape[-1]
    if scale_grad_by_freq:
        raise CannotLower("it divides by how often each row was read")

    def update(position: Position) -> Update:
        token = indices.load(position[:-1]).to(torch.int64)
        row, is_inside = index_in(token, num_weights)
        if padding_idx >= 0:
            is_inside = is_inside & (token != padding_idx)
        return (row, position[-1]), gradient.load(position), is_inside

    zeros = constant(0, (num_weights, width), gradient.dtype)
    return scatter_into(build, zeros, (*indices.shape, width), "add", update, is_exact=True)
