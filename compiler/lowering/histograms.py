"""Histograms: every element adds its weight to the bin that it lies in, a scatter.

Which bin that is, ATen computes in three ways, and so does this. `histc` scales: bin = (x - first) * bins / width.
`histogram` with a number of bins does so too and then looks at the edges beside; with edges it searches among them.
The last bin holds its upper edge. Where no range is given, the least and the largest element are it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.advanced_index import index_in
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import Update
from compiler.lowering.masks import flattened
from compiler.lowering.reductions import amax, amin, sum_
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.searching import first_place_where
from compiler.lowering.values import CannotLower, Position, TensorValue, constant, fixed

aten = torch.ops.aten


@dataclass(frozen=True)
class Range:
    """The first and the last edge, tensors of one element each. `spread` is what both move by where they are equal."""

    first: TensorValue
    last: TensorValue
    spread: float

    def edges(self, dtype: torch.dtype) -> tuple[Any, Any]:
        first, last = (ops.to_dtype(edge.load(()), dtype) for edge in (self.first, self.last))
        by = ops.where(ops.eq(first, last), ops.constant(self.spread, dtype), ops.constant(0, dtype))
        return ops.sub(first, by), ops.add(last, by)


def _range(build: Builder, x: TensorValue, given: Sequence[float] | None, spread: float) -> Range:
    """The range that is given, or that of the elements."""
    if given is None and not x.numel:
        given = (0.0, 1.0)
    if given is not None:
        first, last = (constant(float(edge), (), x.dtype) for edge in given)
        return Range(first, last, spread)
    return Range(amin(build, x), amax(build, x), spread)


def _scaled(value: Any, first: Any, last: Any, bins: int, dtype: torch.dtype) -> Any:
    """The bin of a value as a fraction of the range, which lies inside of it."""
    scaled = ops.truediv(ops.mul(ops.sub(value, first), ops.constant(bins, dtype)), ops.sub(last, first))
    return ops.to_dtype(scaled, torch.int64)


Bin = Callable[[Position], tuple[Any, Any]]


def _counted(
    build: Builder, shape: tuple[int, ...], dtype: torch.dtype, count: Integer, bins: Sequence[Bin],
    weight: TensorValue | None, label: str = "",
) -> TensorValue:  # fmt: skip
    """The sum of the weights of each bin; `bins` give the bin of an element in one dimension, and whether it has one.
    An element on the last edge lies in the last bin."""

    def update(position: Position) -> Update:
        places, is_inside = [], None
        for bin_of, size in zip(bins, shape, strict=True):
            place, is_within = bin_of(position)
            index, is_bin = index_in(ops.minimum(place, ops.constant(size - 1, torch.int64)), size)
            is_within = ops.logical_and(is_within, is_bin)
            is_inside = is_within if is_inside is None else ops.logical_and(is_inside, is_within)
            places.append(index)
        value = ops.constant(1, dtype) if weight is None else weight.load(position)
        return tuple(places), value, is_inside

    return scatter_into(build, constant(0, shape, dtype), (count,), "add", update, label=label)


@lowers(aten.histc.default)
def histc(build: Builder, x: TensorValue, bins: int = 100, min: float = 0, max: float = 0) -> TensorValue:
    if not x.dtype.is_floating_point:
        raise CannotLower("it counts whole numbers")
    if build.device.type == "cuda":
        # Millions of updates of a few bins wait for each other in memory.
        raise CannotLower("the library counts in the shared memory of each multiprocessor")
    flat, compute = flattened(x), compute_dtype(x.dtype)
    limits = _range(build, x, None if min == max and x.numel else (min, max), 1.0)

    def bin_of(position: Position) -> tuple[Any, Any]:
        value, (first, last) = flat.load(position), limits.edges(compute)
        is_inside = ops.logical_and(ops.ge(value, first), ops.le(value, last))
        inside = ops.where(is_inside, value, first)
        return _scaled(inside, first, last, bins, compute), is_inside

    return _counted(build, (bins,), x.dtype, flat.shape[0], [bin_of], None)


# --- bins between edges


def _edges_of(build: Builder, limits: Range, bins: int, dtype: torch.dtype, label: str = "") -> TensorValue:
    """Edges at equal distances, counted from both ends as `linspace` does."""
    compute = compute_dtype(dtype)

    def element(position: Position) -> Any:
        first, last = limits.edges(compute)
        step = ops.truediv(ops.sub(last, first), ops.constant(bins, compute))
        place = ops.index_value(position[0])
        from_end = ops.sub(ops.constant(bins, torch.int64), place)
        low = ops.add(first, ops.mul(step, ops.to_dtype(place, compute)))
        high = ops.sub(last, ops.mul(step, ops.to_dtype(from_end, compute)))
        return ops.where(ops.lt(place, ops.constant((bins + 1) // 2, torch.int64)), low, high)

    return build.pointwise((bins + 1,), dtype, element, label=label, materialise=True)


def _between(x: TensorValue, edges: TensorValue, is_even: bool, column: int) -> Bin:
    """The bin between two of the edges; where those are at equal distances, one looks at those beside a guess."""
    count, compute = fixed(edges.shape[0]), compute_dtype(x.dtype)

    def at(place: int) -> Any:
        return ops.to_dtype(edges.load((Index.number(place),)), compute)

    def edge_is_above(value: Any) -> Callable[[Index], Any]:
        return lambda place: ops.gt(ops.to_dtype(edges.load((place,)), compute), value)

    def bin_of(position: Position) -> tuple[Any, Any]:
        value, first, last = x.load((*position, Index.number(column))), at(0), at(count - 1)
        is_inside = ops.logical_and(ops.ge(value, first), ops.le(value, last))
        value = ops.where(is_inside, value, first)
        if not is_even:
            behind = first_place_where(edge_is_above(value), count)
            return ops.sub(behind, ops.constant(1, torch.int64)), is_inside
        guess = _scaled(value, first, last, count - 1, compute)
        return _nearest(edge_is_above(value), guess, count), is_inside

    return bin_of


def _nearest(is_above: Callable[[Index], Any], guess: Any, count: int) -> Any:
    """The last edge of `guess - 1`, `guess` and `guess + 1` that is not above the value."""
    one = ops.constant(1, torch.int64)
    start = ops.maximum(ops.constant(0, torch.int64), ops.sub(guess, one))
    found = ops.sub(start, one)
    for distance in range(3):
        place = ops.add(start, ops.constant(distance, torch.int64))
        # From the first edge on there are but two edges to look at.
        is_one = ops.logical_and(ops.lt(place, ops.constant(count, torch.int64)), ops.le(ops.sub(place, one), guess))
        index, _ = index_in(ops.minimum(place, ops.constant(count - 1, torch.int64)), count)
        is_below = ops.logical_and(is_one, ops.logical_not(is_above(index)))
        found = ops.add(found, ops.to_dtype(is_below, torch.int64))
    return found


def _histogram(
    build: Builder, x: TensorValue, edges: Sequence[TensorValue], is_even: bool, weight: TensorValue | None,
    density: bool, label: str = "",
) -> TensorValue:  # fmt: skip
    """Of the rows of x, one column for each dimension of the result."""
    shape = tuple(fixed(edge.shape[0]) - 1 for edge in edges)
    bins = [_between(x, edge, is_even, column) for column, edge in enumerate(edges)]
    counted = _counted(build, shape, x.dtype, x.shape[0], bins, weight, label)
    if not density:
        return counted
    total, compute = sum_(build, counted), compute_dtype(x.dtype)

    def element(position: Position) -> Any:
        value = ops.truediv(counted.load(position), total.load(()))
        for edge, place in zip(edges, position, strict=True):
            width = ops.sub(edge.load((place + 1,)), edge.load((place,)))
            value = ops.truediv(value, ops.to_dtype(width, compute))
        return value

    return build.pointwise(shape, x.dtype, element, label="density")


def _as_rows(x: TensorValue) -> TensorValue:
    """The elements of a tensor as rows of one column."""
    flat = flattened(x)
    return flat.view((flat.shape[0], 1), lambda position: position[:1])


@lowers(aten.histogram.bin_ct)
def histogram(
    build: Builder, x: TensorValue, bins: int = 100, *, range: Sequence[float] | None = None,
    weight: TensorValue | None = None, density: bool = False,
) -> tuple[TensorValue, TensorValue]:  # fmt: skip
    edges = _edges_of(build, _range(build, x, range, 0.5), bins, x.dtype, "edges")
    return _histogram(build, _as_rows(x), [edges], True, _weights(weight), density), edges


@lowers(aten.histogram.bins_tensor)
def histogram_between(
    build: Builder, x: TensorValue, bins: TensorValue, *, weight: TensorValue | None = None, density: bool = False
) -> tuple[TensorValue, TensorValue]:
    return _histogram(build, _as_rows(x), [bins], False, _weights(weight), density), bins


def _weights(weight: TensorValue | None) -> TensorValue | None:
    return None if weight is None else flattened(weight)


def _rows_of(x: TensorValue, columns: int) -> TensorValue:
    """A tensor whose last dimension is that of the columns, as a matrix."""
    flat = flattened(x)
    return flat.view((flat.shape[0] // columns, columns), lambda position: (position[0] * columns + position[1],))


@lowers(aten._histogramdd_bin_edges.default)
def histogramdd_bin_edges(
    build: Builder, x: TensorValue, bins: Sequence[int], *, range: Sequence[float] | None = None,
    weight: TensorValue | None = None, density: bool = False,
) -> tuple[TensorValue, ...]:  # fmt: skip
    rows = _rows_of(x, len(bins))

    def of(column: int, count: int) -> TensorValue:
        part = rows.view(rows.shape[:1], lambda position: (position[0], Index.number(column)))
        given = None if range is None else range[2 * column : 2 * column + 2]
        return _edges_of(build, _range(build, part, given, 0.5), count, x.dtype, f"edges_{column}")

    return tuple(of(column, count) for column, count in enumerate(bins))


@lowers(aten._histogramdd_from_bin_cts.default)
def histogramdd(
    build: Builder, x: TensorValue, bins: Sequence[int], *, range: Sequence[float] | None = None,
    weight: TensorValue | None = None, density: bool = False,
) -> TensorValue:  # fmt: skip
    edges = histogramdd_bin_edges(build, x, bins, range=range)
    return _histogram(build, _rows_of(x, len(bins)), edges, True, _weights(weight), density)


@lowers(aten._histogramdd_from_bin_tensors.default)
def histogramdd_between(
    build: Builder, x: TensorValue, bins: Sequence[TensorValue], *, weight: TensorValue | None = None,
    density: bool = False,
) -> TensorValue:  # fmt: skip
    return _histogram(build, _rows_of(x, len(bins)), bins, False, _weights(weight), density)
