"""Bags of embeddings: rows of a table summed, averaged or compared, and the gradients of that.

    bag[i] = how many offsets are at most i, less one        a binary search, for each token
    output[bag[i], f] += table[token[i], f]                  a scatter over tokens and features

Where every bag is known to have as many tokens as the others (they are rows of a matrix), it is a reduction:

    output[b, f] = sum of table[token[length * b + r], f] over r < length

Tokens that are `padding_idx` take no part. A bag without tokens is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import torch

from compiler.ir.body import formula_of
from compiler.ir.index import Dim, Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.advanced_index import index_in, wrapped_index
from compiler.lowering.builder import Builder
from compiler.lowering.embeddings import frequencies
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import COLLECTED_IN, scatter_into
from compiler.lowering.searching import first_place_where
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2


@dataclass(frozen=True)
class Bags:
    """The tokens, the bag of each, and how many bags there are. `length` is how many tokens each has, where that is
    known and one bag follows the other."""

    tokens: TensorValue
    bag_of: TensorValue
    count: Integer
    padding: int
    length: int | None = None

    def place(self, token: Index) -> tuple[Index, Any]:
        """The bag of the token at a place, and whether it takes part in it."""
        bag, is_inside = index_in(self.bag_of.load((token,)), self.count)
        return bag, is_inside if self.padding < 0 else is_inside & self.is_real(token)

    def is_real(self, token: Index) -> Any:
        """Whether the token at a place is no padding."""
        return self.tokens.load((token,)).to(torch.int64) != self.padding

    def token(self, bag: Index, inside: Index) -> Index:
        """The place of a token in a bag of known length."""
        assert self.length is not None
        return bag * self.length + inside

    def sizes(self, build: Builder) -> TensorValue:
        """How many tokens take part in each bag."""
        if self.length is not None and self.padding < 0:
            return constant(self.length, (self.count,), torch.int64)
        if self.length is not None:

            def takes_part(bag: Position, inside: Position) -> Any:
                return ops.reduce("sum", self.is_real(self.token(bag[0], inside[0])).to(torch.int64))

            return build.reduction((self.count,), torch.int64, (self.length,), takes_part, label="sizes")

        def update(position: Position) -> Update:
            bag, takes_part = self.place(position[0])
            return (bag,), ops.constant(1, torch.int64), takes_part

        zeros = constant(0, (self.count,), torch.int64)
        return scatter_into(build, zeros, self.tokens.shape, "add", update, label="sizes")


def _bags(build: Builder, tokens: TensorValue, offsets: TensorValue, count: Integer, padding: int) -> Bags:
    """The bags that start at `offsets`. What lies behind a last offset that starts none is in no bag."""

    def element(position: Position) -> Any:
        place = ops.index_value(position[0])
        length = offsets.shape[0]

        def is_behind(at: Index) -> Any:
            return offsets.load((at,)).to(torch.int64) > place

        return first_place_where(is_behind, length) - 1

    if tokens.rank != 1:
        raise CannotLower("its tokens are not in one row")
    length = _even_length(tokens, offsets, count)
    bag_of = element if length is None else (lambda position: ops.index_value(position[0] // length))
    return Bags(tokens, build.pointwise(tokens.shape, torch.int64, bag_of, label="bags"), count, padding, length)


def _even_length(tokens: TensorValue, offsets: TensorValue, count: Integer) -> int | None:
    """How many tokens each bag has, if the offsets are the multiples of a number up to the last token."""
    if offsets.buffer is not None or offsets.shape != (count,) or not isinstance(tokens.shape[0], int):
        return None
    bag = Dim("bag", count)
    start = formula_of(lambda: offsets.load((Index.of(bag),)).to(torch.int64))
    length = None if start is None else start.coefficient(bag)
    if not isinstance(length, int) or length == 0 or start != Index.of(bag) * length:
        return None
    return length if length * count == tokens.shape[0] else None


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    build: Builder, weight: TensorValue, indices: TensorValue, offsets: TensorValue, scale_grad_by_freq: bool = False,
    mode: int = SUM, sparse: bool = False, per_sample_weights: TensorValue | None = None,
    include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[TensorValue, ...]:  # fmt: skip
    """The bags, and for the gradient: the bag of each token, the sizes of the bags, and for a maximum its tokens."""
    output, of_bags, of_sizes, of_extremes = build.eager
    bags = _bags(build, indices, offsets, output.shape[0], padding_idx)
    sizes = bags.sizes(build)
    # Of sums, PyTorch's kernel for CPUs counts nothing: no gradient divides by it.
    counted = constant(0, sizes.shape, torch.int64) if mode == SUM and build.device.type == "cpu" else sizes
    largest: TensorValue | None = None
    if mode == MAX:
        result, largest = _largest(build, weight, bags, sizes)
    else:
        result = _summed(build, weight, bags, per_sample_weights, sizes if mode == MEAN else None)
    return (
        result,
        _shaped(build, bags.bag_of, of_bags, "bags_result"),
        _shaped(build, counted, of_sizes, "sizes_result"),
        _shaped(build, counted if largest is None else largest, of_extremes, "largest_result"),
    )


def _shaped(build: Builder, value: TensorValue, like: Any, label: str) -> TensorValue:
    """A result that only the gradient reads, in the size that eager gives it: it leaves out what it does not need."""

    def element(position: Position) -> Any:
        if value.shape == like.shape:
            return value.load(position)
        index, is_inside = index_in(ops.index_value(position[0]), value.shape[0])
        return ops.where(is_inside, value.load((index,)), 0)

    return build.pointwise(like.shape, like.dtype, element, label=label)


def _summed(
    build: Builder, weight: TensorValue, bags: Bags, factors: TensorValue | None, sizes: TensorValue | None
) -> TensorValue:
    """The sums of the bags, divided by `sizes` where they are given."""
    shape, dtype = (bags.count, weight.shape[1]), weight.dtype
    held = COLLECTED_IN.get(dtype, dtype)

    def value_of(token: Index, feature: Index) -> Any:
        value = weight.load((wrapped_index(bags.tokens.load((token,)), weight.shape[0]), feature))
        return value if factors is None else value * factors.load((token,)).to(held)

    def update(position: Position) -> Update:
        bag, takes_part = bags.place(position[0])
        return (bag, position[1]), value_of(*position), takes_part

    def of_bag(position: Position, inside: Position) -> Any:
        token = bags.token(position[0], inside[0])
        value = value_of(token, position[1]).to(held)
        if bags.padding >= 0:
            value = ops.where(bags.is_real(token), value, 0)
        return ops.reduce("sum", value)

    sources = (bags.tokens.shape[0], weight.shape[1])
    zeros = constant(0, shape, dtype)
    if bags.length is not None:
        total = build.reduction(shape, held, (bags.length,), of_bag, label="" if sizes is None else "sum")
    elif sizes is None:
        return scatter_into(build, zeros, sources, "add", update, is_exact=True)
    else:
        total = scatter_into(build, zeros, sources, "add", update, dtype=held, label="sum")
    if sizes is None:
        return build.pointwise(shape, dtype, total.load, label="result") if held != dtype else total

    def element(position: Position) -> Any:
        return total.load(position) / ops.maximum(sizes.load(position[:1]), 1).to(held)

    return build.pointwise(shape, dtype, element)


def _largest(
    build: Builder, weight: TensorValue, bags: Bags, sizes: TensorValue
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    """The largest of each feature in each bag, and the first token that has it."""
    shape, sources = (bags.count, weight.shape[1]), (bags.tokens.shape[0], weight.shape[1])
    compute, count = compute_dtype(weight.dtype), bags.tokens.shape[0]

    def value_of(token: Index, feature: Index) -> Any:
        return weight.load((wrapped_index(bags.tokens.load((token,)), weight.shape[0]), feature))

    def extreme(position: Position) -> Update:
        bag, takes_part = bags.place(position[0])
        return (bag, position[1]), value_of(*position), takes_part

    lowest = constant(-inf, shape, weight.dtype)
    best = scatter_into(build, lowest, sources, "max", extreme, dtype=compute, label="best")

    def first(position: Position) -> Update:
        bag, takes_part = bags.place(position[0])
        is_best = best.load((bag, position[1])) == value_of(*position)
        return (bag, position[1]), ops.index_value(position[0]), takes_part & is_best

    place = scatter_into(build, constant(count, shape, torch.int64), sources, "min", first, label="place")

    def result(position: Position) -> Any:
        return ops.where(sizes.load(position[:1]) == 0, 0, best.load(position))

    def token(position: Position) -> Any:
        index, is_inside = index_in(place.load(position), count)
        return ops.where(is_inside, bags.tokens.load((index,)).to(torch.int64), 0)

    tokens = constant(0, shape, torch.int64)
    if count != 0:
        tokens = build.pointwise(shape, torch.int64, token, label="largest")
    return build.pointwise(shape, weight.dtype, result), tokens


# --- gradients


@lowers(aten._embedding_bag_backward.default)
def embedding_bag_backward(
    build: Builder, gradient: TensorValue, indices: TensorValue, offsets: TensorValue, offset2bag: TensorValue,
    bag_size: TensorValue, maximum_indices: TensorValue, num_weights: int, scale_grad_by_freq: bool, mode: int,
    sparse: bool, per_sample_weights: TensorValue | None, padding_idx: int = -1,
) -> TensorValue:  # fmt: skip
    """The gradient of a bag is added to the row of each of its tokens."""
    if sparse:
        raise CannotLower("its gradient is a sparse tensor")
    rows, bags = num_weights, _bags(build, indices, offsets, gradient.shape[0], padding_idx)
    zeros = constant(0, (rows, gradient.shape[1]), gradient.dtype)
    if mode == MAX:
        chosen = _to_largest(gradient, bag_size, maximum_indices, rows)
        return scatter_into(build, zeros, gradient.shape, "add", chosen, is_exact=True)
    if scale_grad_by_freq and build.device.type == "cpu":
        raise CannotLower("on a CPU eager divides by the frequencies of other tokens than it should, and is followed")
    counts = frequencies(build, bags.tokens, rows) if scale_grad_by_freq and bags.tokens.numel else None

    def update(position: Position) -> Update:
        token, feature = position
        bag, takes_part = bags.place(token)
        row = wrapped_index(bags.tokens.load((token,)), rows)
        value = gradient.load((bag, feature))
        if per_sample_weights is not None:
            value = value * per_sample_weights.load((token,)).to(compute_dtype(gradient.dtype))
        divisors = [bag_size.load((bag,))] if mode == MEAN else []
        divisors += [] if counts is None else [counts.load((row,))]
        for divisor in divisors:
            value = value / divisor.to(compute_dtype(gradient.dtype))
        return (row, feature), value, takes_part

    return scatter_into(build, zeros, (bags.tokens.shape[0], gradient.shape[1]), "add", update, is_exact=True)


def _to_largest(
    gradient: TensorValue, sizes: TensorValue, largest: TensorValue, rows: int
) -> Callable[[Position], Update]:
    """Each feature of a bag came from one token."""

    def update(position: Position) -> Update:
        row, is_inside = index_in(largest.load(position), rows)
        return (row, position[1]), gradient.load(position), is_inside & (sizes.load(position[:1]) > 0)

    return update
