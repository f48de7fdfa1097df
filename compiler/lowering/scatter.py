"""Writes at computed places: scatter, index_put and what is made of them (index_add, the gradient of an embedding).

    scatter_add_start = x                             one pointwise node, over the elements of the result
    scatter_add[index[p]] += source[p]                one scatter node, over the elements of the source, in place

Where several values meet at one place, `add`, `min` and `max` combine them, on a GPU by atomic operations, in an order
that differs from run to run (as eager's does). Types that have no such operations are collected in a wider one and
rounded once. A plain write leaves one of the values: on a CPU the last, as eager does.
Eager raises for an index outside of the tensor. A kernel cannot: such an element is not written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, inf, nan
from typing import Any

import torch

from compiler.ir.index import Index, unflatten
from compiler.ir.nodes import Layout
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder, Update, is_dense, overlaps
from compiler.lowering.indexing import all_of, at_least, below
from compiler.lowering.promotion import broadcast_shapes
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, broadcast, constant
from compiler.lowering.views import digits, place_in_eager, wrap

aten = torch.ops.aten

#: GPUs have atomic operations on 32 and 64 bits; in what narrower types are collected. float32 also keeps sums of
#: half types from being rounded at each step.
COLLECTED_IN = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.bool: torch.int32,
    torch.uint8: torch.int32, torch.int8: torch.int32, torch.int16: torch.int32,
}  # fmt: skip

Updating = Callable[[Position], Update]

#: Modes by what `scatter_reduce` calls them.
MODES = {"sum": "add", "mean": "add", "amin": "min", "amax": "max"}


def place_in(value: Any, size: Integer) -> tuple[Index, Any]:
    """A loaded integer as a place in a dimension of `size`, counted from the end where it is negative, and whether it
    is one."""
    value, zero, bound = ops.to_dtype(value, torch.int64), ops.constant(0, torch.int64), ops.constant(size, torch.int64)
    place = ops.where(ops.lt(value, zero), ops.add(value, bound), value)
    is_inside = ops.logical_and(ops.ge(place, zero), ops.lt(place, bound))
    index: Index = ops.indirect(ops.where(is_inside, place, zero), size)
    return index, is_inside


def scatter_into(
    build: Builder, x: TensorValue, sources: tuple[Integer, ...], mode: str, update: Updating, *,
    before: Updating | None = None, dtype: torch.dtype | None = None, label: str = "",
) -> TensorValue:  # fmt: skip
    """A copy of `x`, changed at a place for each position of a loop over `sources`. `before` is written first, where a
    reduction does not take in what `x` holds. `dtype` is the result's, where it is not that of `x`."""
    dtype = dtype or x.dtype
    held = dtype if mode == "set" else COLLECTED_IN.get(dtype, dtype)
    layout = build.result_layout(x.shape, held)

    def starting(position: Position) -> Any:
        return comparable(ops.to_dtype(x.load(position), held), mode)

    def changing(position: Position) -> Update:
        place, value, mask = update(position)
        return place, comparable(ops.to_dtype(value, held), mode), mask

    prefix = f"{label}_" if label else ""
    if 0 in sources or 0 in x.shape:
        return build.pointwise(x.shape, dtype, x.load, label=label, materialise=True)
    result = build.pointwise(x.shape, held, starting, label=f"{prefix}start", layout=layout, materialise=True)
    if before is not None:
        result = build.scatter(result, sources, "set", before, label=f"{prefix}identity")
    if held == dtype:
        return build.scatter(result, sources, mode, changing, label=label)
    result = build.scatter(result, sources, mode, changing, label=f"{prefix}{held}".replace("torch.", ""))
    return build.pointwise(x.shape, dtype, result.load, label=label)


def comparable(value: Any, mode: str) -> Any:
    """For min and max, every NaN as the one that wins where GPUs compare floats as integers: with the sign bit set it
    is below all numbers, without it above them."""
    dtype = value.dtype
    if mode not in ("min", "max") or not dtype.is_floating_point:
        return value
    winner = ops.copysign(ops.constant(nan, dtype), ops.constant(copysign(1.0, -1 if mode == "min" else 1), dtype))
    return ops.where(ops.isnan(value), winner, value)


# --- along one dimension


def along(x: TensorValue, dim: int, index: TensorValue, source: Callable[[Position], Any]) -> Updating:
    """The updates of `scatter`: element p of `source` goes to p, but for the dimension `dim`, where the index says."""
    at = wrap(dim, x.rank) if x.rank else 0

    def update(position: Position) -> Update:
        if not x.rank:
            return (), source(position), None
        place, is_inside = place_in(index.load(position), x.shape[at])
        return (*position[:at], place, *position[at + 1 :]), source(position), is_inside

    return update


def reader(source: Any, x: TensorValue) -> Callable[[Position], Any]:
    """What a scatter into `x` writes: the elements of a tensor, or one number."""
    if isinstance(source, TensorValue):
        return with_rank_of(x, source).load
    return lambda position: ops.constant(source, x.dtype)


def with_rank_of(x: TensorValue, value: TensorValue) -> TensorValue:
    """A tensor without dimensions beside one that has some is taken as one of size one, and the other way around."""
    if value.rank == x.rank:
        return value
    zero = Index.number(0)
    return value.view((1,) * x.rank, lambda position: (zero,) * value.rank)


@lowers(aten.scatter.value, aten.scatter.src)
def scatter(build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any) -> TensorValue:
    """Where each row is written at one place, the other way around: every element asks whether it is that place, so
    that the node is pointwise and fuses with what follows."""
    new, index = reader(value, x), with_rank_of(x, index)
    at = wrap(dim, x.rank) if x.rank else 0
    if not x.rank or index.shape != (*x.shape[:at], 1, *x.shape[at + 1 :]):
        return scatter_into(build, x, index.shape, "set", along(x, dim, index, new))

    def element(position: Position) -> Any:
        row = (*position[:at], Index.number(0), *position[at + 1 :])
        is_place = ops.eq(ops.to_dtype(index.load(row), torch.int64), ops.index_value(position[at]))
        return ops.where(is_place, new(row), x.load(position))

    return build.pointwise(x.shape, x.dtype, element)


@lowers(aten.scatter_add.default)
def scatter_add(build: Builder, x: TensorValue, dim: int, index: TensorValue, src: TensorValue) -> TensorValue:
    return scatter_reduce(build, x, dim, index, src, "sum")


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any, *, reduce: str
) -> TensorValue:
    return scatter_reduce(build, x, dim, index, value, {"add": "sum", "multiply": "prod"}[reduce])


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    build: Builder, x: TensorValue, dim: int, index: TensorValue, src: Any, reduce: str, *, include_self: bool = True
) -> TensorValue:
    if reduce not in MODES:
        raise CannotLower("GPUs have no atomic product")
    mode, held = MODES[reduce], COLLECTED_IN.get(x.dtype, x.dtype)
    index, source = with_rank_of(x, index), reader(src, x)
    none = identity(mode, held)
    before = None if include_self else along(x, dim, index, lambda position: ops.constant(none, held))
    update = along(x, dim, index, source)
    if reduce != "mean" or not index.numel or not x.numel:
        return scatter_into(build, x, index.shape, mode, update, before=before)
    # The sum stays in the wide type until it is divided.
    total = scatter_into(build, x, index.shape, mode, update, before=before, dtype=held, label="sum")
    start = constant(int(include_self), x.shape, torch.int64)
    one = along(x, dim, index, lambda position: ops.constant(1, torch.int64))
    count = scatter_into(build, start, index.shape, mode, one, label="count")
    return build.pointwise(x.shape, x.dtype, lambda position: quotient(total.load(position), count.load(position)))


def identity(mode: str, dtype: torch.dtype) -> int | float:
    """What changes nothing when it is combined with another value."""
    if mode == "add":
        return 0
    if dtype.is_floating_point:
        return inf if mode == "min" else -inf
    limits = torch.iinfo(dtype)
    return limits.max if mode == "min" else limits.min


def quotient(total: Any, count: Any) -> Any:
    """A mean, of nothing but the element itself where it has no count; whole numbers round down, as eager's do."""
    count = ops.to_dtype(ops.maximum(count, ops.constant(1, torch.int64)), total.dtype)
    return ops.truediv(total, count) if total.dtype.is_floating_point else ops.floordiv(total, count)


# --- at places given by several index tensors


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    build: Builder, x: TensorValue, indices: Sequence[TensorValue | None], values: TensorValue,
    accumulate: bool = False,
) -> TensorValue:  # fmt: skip
    """The index tensors broadcast together, and stand where the first of them does if they are neighbours, else in
    front, as in `index`; the values broadcast to what reading there would give."""
    given = {place: index for place, index in enumerate(indices) if index is not None}
    if any(index.dtype in (torch.bool, torch.uint8) for index in given.values()):
        return put_where(build, x, given, values, accumulate)
    common = broadcast_shapes(*given.values())
    places = list(given)
    at = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    kept = [place for place in range(x.rank) if place not in given]
    before = [place for place in kept if place < at]
    shape = (*(x.shape[p] for p in before), *common, *(x.shape[p] for p in kept[len(before) :]))
    parts = {place: broadcast(index, common) for place, index in given.items()}
    source = broadcast(values, shape)

    def update(position: Position) -> Update:
        shared = position[len(before) : len(before) + len(common)]
        rest = iter((*position[: len(before)], *position[len(before) + len(common) :]))
        found = {place: place_in(parts[place].load(shared), x.shape[place]) for place in parts}
        where = tuple(found[place][0] if place in found else next(rest) for place in range(x.rank))
        return where, source.load(position), all_of([is_inside for _, is_inside in found.values()])

    return scatter_into(build, x, shape, "add" if accumulate else "set", update)


def put_where(
    build: Builder, x: TensorValue, given: dict[int, TensorValue], values: TensorValue, accumulate: bool
) -> TensorValue:
    """One mask over the leading dimensions, and one value for all places: each element asks whether it is chosen."""
    if len(given) != 1 or 0 not in given or values.numel != 1:
        raise CannotLower("it writes as many values as its mask is true")
    mask = given[0]

    def element(position: Position) -> Any:
        chosen, old = mask.load(position[: mask.rank]), x.load(position)
        chosen = ops.ne(chosen, ops.constant(0, mask.dtype)) if mask.dtype != torch.bool else chosen
        new = values.load((Index.number(0),) * values.rank)
        return ops.where(chosen, ops.add(old, new) if accumulate else new, old)

    return build.pointwise(x.shape, x.dtype, element)


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(build: Builder, x: TensorValue, dim: int, index: TensorValue, value: Any) -> TensorValue:
    """Whole slices, at the places of an index of one dimension or none, get one value."""
    at, new = wrap(dim, x.rank) if x.rank else 0, reader(value, x)

    def update(position: Position) -> Update:
        value = new((Index.number(0),) * x.rank)
        if not x.rank:
            return (), value, None
        place, is_inside = place_in(index.load((position[at],) if index.rank else ()), x.shape[at])
        return (*position[:at], place, *position[at + 1 :]), value, is_inside

    count = index.numel if index.rank else 1
    sources = (*x.shape[:at], count, *x.shape[at + 1 :]) if x.rank else (() if count else (0,))
    return scatter_into(build, x, sources, "set", update)


@lowers(aten.put.default)
def put(
    build: Builder, x: TensorValue, index: TensorValue, source: TensorValue, accumulate: bool = False
) -> TensorValue:
    """Places count through the tensor in row-major order."""
    sizes = x.shape

    def update(position: Position) -> Update:
        place, is_inside = place_in(index.load(position), x.numel)
        return unflatten(place, sizes), source.load(position), is_inside

    if index.shape != source.shape:
        raise CannotLower("its index and its source have different shapes")
    return scatter_into(build, x, index.shape, "add" if accumulate else "set", update)


@lowers(aten.embedding_dense_backward)
def embedding_dense_backward(
    build: Builder, gradient: TensorValue, indices: TensorValue, num_weights: int, padding_idx: int,
    scale_grad_by_freq: bool,
) -> TensorValue:  # fmt: skip
    """Each row of the gradient is added to the row of the table that it was read from, but for the padding."""
    width = gradient.shape[-1]
    counts = _frequencies(build, indices, num_weights) if scale_grad_by_freq and indices.numel else None

    def update(position: Position) -> Update:
        token = ops.to_dtype(indices.load(position[:-1]), torch.int64)
        row, is_inside = place_in(token, num_weights)
        if padding_idx >= 0:
            is_real = ops.ne(token, ops.constant(padding_idx, torch.int64))
            is_inside = ops.logical_and(is_inside, is_real)
        value = gradient.load(position)
        if counts is not None:
            value = ops.truediv(value, ops.to_dtype(counts.load((row,)), value.dtype))
        return (row, position[-1]), value, is_inside

    zeros = constant(0, (num_weights, width), gradient.dtype)
    return scatter_into(build, zeros, (*indices.shape, width), "add", update)


def _frequencies(build: Builder, indices: TensorValue, num_weights: int) -> TensorValue:
    """How often each row of the table was read."""

    def update(position: Position) -> Update:
        row, is_inside = place_in(indices.load(position), num_weights)
        return (row,), ops.constant(1, torch.int64), is_inside

    return scatter_into(
        build, constant(0, (num_weights,), torch.int64), indices.shape, "add", update, label="frequencies"
    )


# --- at places known beforehand


@lowers(aten.as_strided_scatter)
def as_strided_scatter(
    build: Builder, x: TensorValue, src: TensorValue, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> TensorValue:  # fmt: skip
    """Where the written part is without gaps, it is a range of places in the storage, and every element asks whether
    it lies there; otherwise its elements are scattered."""
    strides, first = place_in_eager(build, x)
    start = 0 if storage_offset is None else storage_offset - first
    if overlaps(size, stride):
        raise CannotLower("several elements may share one place")
    end = start + Layout(tuple(size), tuple(stride), x.dtype).storage_numel
    if start < 0 or end > x.numel:
        raise CannotLower("it writes outside of the tensor")
    if not is_dense(size, stride):
        part = Layout(tuple(size), tuple(stride), x.dtype, start)

        def update(position: Position) -> Update:
            return digits(part.index(position), x.shape, strides), src.load(position), None

        return scatter_into(build, x, tuple(size), "set", update)

    def element(position: Position) -> Any:
        distance = Layout(x.shape, strides, x.dtype).index(position) - start
        conditions = [at_least(distance, 0)] if start else []
        inside = all_of([*conditions, below(distance, src.numel)] if start + src.numel < x.numel else conditions)
        new = ops.to_dtype(src.load(digits(distance, size, stride), inside), compute_dtype(x.dtype))
        return new if inside is None else ops.where(inside, new, x.load(position))

    return build.pointwise(x.shape, x.dtype, x.load if src.numel == 0 else element)
