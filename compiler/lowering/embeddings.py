"""Embeddings: rows of a table chosen by tokens, and the gradient of that. Of bags of them, those that are rows of a
matrix of tokens, summed or averaged, and the gradient of any bags.

    output[b, f] = sum of table[token[length * b + r], f] over r < length

Other bags are PyTorch's own kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from compiler.ir.body import formula_of
from compiler.ir.index import Dim, Index
from compiler.ir.ops import ops
from compiler.ir.size import Integer
from compiler.lowering.advanced_index import index_in, wrapped_index
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import decomposes, lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten

SUM, MEAN = 0, 1


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


# --- bags


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    build: Builder, weight: TensorValue, indices: TensorValue, offsets: TensorValue, scale_grad_by_freq: bool = False,
    mode: int = SUM, sparse: bool = False, per_sample_weights: TensorValue | None = None,
    include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[TensorValue, ...]:  # fmt: skip
    """The bags, and for the gradient: the bag of each token, and twice the sizes of the bags."""
    output, of_bags, of_sizes, of_extremes = build.eager
    count, length = output.shape[0], _length(indices, offsets, output.shape[0])
    is_plain = mode in (SUM, MEAN) and padding_idx < 0 and per_sample_weights is None
    if length is None or not is_plain or of_bags.shape not in ((0,), indices.shape):
        raise CannotLower("its bags are no rows of tokens whose embeddings are summed")

    def element(position: Position, inner: Position) -> Any:
        token = indices.load((position[0] * length + inner[0],))
        total = ops.reduce("sum", weight.load((wrapped_index(token, weight.shape[0]), position[1])))
        return total / float(length) if mode == MEAN else total

    def bag(position: Position) -> Any:
        return ops.index_value(position[0] // length)

    # Of sums, PyTorch's kernel for CPUs counts nothing: no gradient divides by it.
    size = 0 if mode == SUM and build.device.type == "cpu" else length
    return (
        build.reduction((count, weight.shape[1]), weight.dtype, (length,), element),
        build.pointwise(of_bags.shape, of_bags.dtype, bag, label="bags"),
        constant(size, of_sizes.shape, of_sizes.dtype),
        constant(size, of_extremes.shape, of_extremes.dtype),
    )


def _length(tokens: TensorValue, offsets: TensorValue, count: Integer) -> int | None:
    """How many tokens each bag has, if the offsets are the multiples of a number up to the last token."""
    if offsets.buffer is not None or offsets.shape != (count,) or tokens.rank != 1:
        return None
    bag = Dim("bag", count)
    start = formula_of(lambda: offsets.load((Index.of(bag),)).to(torch.int64))
    length = None if start is None else start.coefficient(bag)
    if not isinstance(length, int) or length == 0 or start != Index.of(bag) * length:
        return None
    return length if length * count == tokens.shape[0] else None


@decomposes(aten._embedding_bag_backward)
def embedding_bag_backward(
    gradient: Tensor, indices: Tensor, offsets: Tensor, bags: Tensor, sizes: Tensor, extremes: Tensor,
    num_weights: int, scale_grad_by_freq: bool, mode: int, sparse: bool, factors: Tensor | None, padding_idx: int = -1,
) -> Tensor:  # fmt: skip
    """The gradient of a bag is that of the row of each of its tokens."""
    if sparse or scale_grad_by_freq or mode not in (SUM, MEAN):
        return NotImplemented  # type: ignore[no-any-return]
    if bags.shape != indices.shape:  # of sums, PyTorch's kernel for CPUs does not say
        positions = torch.arange(indices.numel(), device=indices.device)
        bags = torch.searchsorted(offsets.to(torch.int64), positions, right=True) - 1
    # Where the offsets have a last one, PyTorch's kernel for GPUs counts the tokens behind it too.
    counts = sizes[: gradient.shape[0]].clamp(min=1).unsqueeze(1)
    shared = gradient / counts.to(gradient.dtype) if mode == MEAN else gradient
    rows = shared[bags] if factors is None else shared[bags] * factors.unsqueeze(1)
    return aten.embedding_dense_backward.default(rows, indices, num_weights, padding_idx, False)  # type: ignore[no-any-return]
