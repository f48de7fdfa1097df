"""Embeddings: rows of a table chosen by tokens, the gradient of that, and the renormalisation of what is chosen."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from compiler.ir.ops import ops
from compiler.ir.size import Integer
from compiler.lowering.advanced_index import index_in, wrapped_index
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import decomposes, lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import Position, TensorValue, constant

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
    counts = frequencies(build, indices, num_weights) if scale_grad_by_freq and indices.numel else None

    def update(position: Position) -> Update:
        token = indices.load(position[:-1]).to(torch.int64)
        row, is_inside = index_in(token, num_weights)
        if padding_idx >= 0:
            is_inside = is_inside & (token != padding_idx)
        value = gradient.load(position)
        if counts is not None:
            value = value / counts.load((row,)).to(value.dtype)
        return (row, position[-1]), value, is_inside

    zeros = constant(0, (num_weights, width), gradient.dtype)
    return scatter_into(build, zeros, (*indices.shape, width), "add", update, is_exact=True)


def frequencies(build: Builder, indices: TensorValue, num_weights: Integer) -> TensorValue:
    """How often each row of the table was read."""

    def update(position: Position) -> Update:
        row, is_inside = index_in(indices.load(position), num_weights)
        return (row,), ops.constant(1, torch.int64), is_inside

    return scatter_into(
        build, constant(0, (num_weights,), torch.int64), indices.shape, "add", update, label="frequencies"
    )


@decomposes(aten.embedding_renorm)
def embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows that are read and whose norm is larger than `max_norm` shrink to it."""
    is_read = torch.zeros_like(weight[:, :1], dtype=torch.bool).index_fill(0, indices.reshape(-1), True)
    length = torch.linalg.vector_norm(weight, norm_type, 1, keepdim=True)
    return torch.where(is_read & (length > max_norm), weight * (max_norm / (length + 1e-7)), weight)
