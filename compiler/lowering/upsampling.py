"""Gradients of interpolation, as sums over the results that an element of the image is part of.

A result is a weighted sum of a few elements of the image, its taps, near its coordinate there. Along each axis a tap
has an index and a weight, and weights of axes multiply:

    result[j]  =  sum over taps t of  weight(j, t) * image[index(j, t)]

For the gradient, every element of the image asks the results that may have it among their taps. They lie in a range
whose length is known beforehand, so this is a reduction that fuses and whose order is fixed, and nothing is scattered:

    gradient of image[i]  =  sum over j near i*n/m of  (weight of i in result j) * gradient of result[j]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of, inside_of
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten

#: Taps of a result, each with its index (int64) and its weight.
Taps = list[tuple[Any, Any]]

#: How near to a whole number, in elements of the image, the coordinate of a result is taken to lie on either side of
#: it, so that no tap is missed that a kernel's rounding moves by one.
DOUBT = 1e-3


@dataclass(frozen=True)
class Axis:
    """One axis of an interpolation: `image` elements become `result` elements.

    `scale` is how many times larger the caller said the result is, of which ATen computes coordinates where it is
    given. With `aligns_corners` the first and the last elements of both lie on each other, else their borders do.
    """

    image: Integer
    result: Integer
    scale: float | None = None
    aligns_corners: bool = False

    def step(self, dtype: torch.dtype) -> Any:
        """The distance between neighbours of the result, in elements of the image."""
        if self.scale is not None and self.scale > 0 and not self.aligns_corners:
            return ops.constant(1.0 / self.scale, dtype)
        image, result = (self.image - 1, self.result - 1) if self.aligns_corners else (self.image, self.result)
        if isinstance(image, int) and isinstance(result, int):
            return ops.constant(image / result if result else 0.0, dtype)
        # A result of one element has no neighbour, so the distance is of no matter.
        return image / ops.maximum(ops.constant(result, dtype), 1.0)

    def source(self, j: Index, dtype: torch.dtype) -> Any:
        """Where result j lies in the image, between its elements."""
        coordinate = ops.index_value(j, dtype)
        if self.aligns_corners:
            return self.step(dtype) * coordinate
        return self.step(dtype) * (coordinate + 0.5) - 0.5

    def clamped(self, coordinate: Any) -> Any:
        return ops.minimum(ops.maximum(coordinate, 0), self.image - 1)


@dataclass(frozen=True)
class Filter:
    """A way to interpolate: the taps of result j along an axis, which lie up to `last` elements behind the one at or
    below the coordinate of j."""

    taps: Callable[[Axis, Index, torch.dtype], Taps]
    last: int
    #: What is added to j, in elements of the result, before its coordinate is computed as a multiple of the step; None
    #: where `Axis.source` is the coordinate.
    shift: float | None = None


def _nearest(shift: float) -> Filter:
    def taps(axis: Axis, j: Index, dtype: torch.dtype) -> Taps:
        """One tap of weight one. ATen computes its coordinate in float32 for every dtype."""
        coordinate = (ops.index_value(j, torch.float32) + shift) * axis.step(torch.float32)
        return [(axis.clamped(ops.floor(coordinate).to(torch.int64)), None)]

    return Filter(taps, 0, shift)


def linear_taps(axis: Axis, j: Index, dtype: torch.dtype) -> Taps:
    source = ops.maximum(axis.source(j, dtype), 0.0)
    below = ops.floor(source)
    weight = ops.minimum(source - below, 1.0)
    index = below.to(torch.int64)
    return [(axis.clamped(index), 1.0 - weight), (axis.clamped(index + 1), weight)]


NEAREST, NEAREST_EXACT = _nearest(0.0), _nearest(0.5)
LINEAR = Filter(linear_taps, 1)


# --- which results an element of the image is part of


@dataclass(frozen=True)
class Range:
    """The results from  i * n // m + offset  on, `count` of them, for element i of an axis of m to n."""

    axis: Axis
    offset: Integer
    count: Integer

    def at(self, i: Index, k: Index) -> Index:
        return (i * self.axis.result) // self.axis.image + self.offset + k


def range_of(axis: Axis, kind: Filter) -> Range:
    """A range of results that holds all those with a tap at an element, whichever it is: the shortest one where sizes
    are numbers. Raises CannotLower where nothing bounds it."""
    if isinstance(axis.image, int) and isinstance(axis.result, int):
        return _shortest_range(axis, kind, axis.image, axis.result)
    if axis.scale is not None and axis.result != axis.image * int(axis.scale):
        raise CannotLower("its sizes differ from call to call, and are not known to be as its scale says")
    # There are n/m results an element. None with a tap at i lies more than one element before or behind those taps'
    # reach around  i * n / m,  whether borders or corners are aligned.
    before, reach = kind.last + 1, kind.last + 4
    offset = -((before * axis.result) // axis.image) - 2
    return Range(axis, offset, (reach * axis.result) // axis.image + 4)


def _shortest_range(axis: Axis, kind: Filter, image: int, result: int) -> Range:
    step = 1.0 / axis.scale if axis.scale and not axis.aligns_corners else image / result
    if axis.aligns_corners:
        step = (image - 1) / (result - 1) if result > 1 else 0.0
    if kind.shift is not None:
        # Two roundings in float32, which every kernel does alike.
        source, doubt = (torch.arange(result, dtype=torch.float32) + kind.shift) * step, 0.0
    else:
        j, doubt = torch.arange(result, dtype=torch.float64), DOUBT
        source = j * step if axis.aligns_corners else (j + 0.5) * step - 0.5
    lowest = (source - doubt).floor().clamp(0, image - 1)
    highest = ((source + doubt).floor() + kind.last).clamp(0, image - 1)
    i = torch.arange(image, dtype=source.dtype)
    # Both grow with j: the results with a tap at i are those from the first whose highest tap reaches it on.
    first, end = torch.searchsorted(highest, i), torch.searchsorted(lowest, i, right=True)
    near = torch.arange(image) * result // image
    is_read = first < end
    if not bool(is_read.any()):
        return Range(axis, 0, 1)
    offset = int((first - near)[is_read].min())
    return Range(axis, offset, int((end - near)[is_read].max()) - offset)


# --- the operators


def _weight_of(taps: Taps, i: Index) -> tuple[Any, Any]:
    """Whether one of the taps is element i, and the sum of the weights of those that are (None where each has one)."""
    at, is_tap, total = ops.index_value(i), None, None
    for index, weight in taps:
        is_here = index == at
        is_tap = is_here if is_tap is None else is_tap | is_here
        if weight is not None:
            share = ops.where(is_here, weight, 0.0)
            total = share if total is None else total + share
    return is_tap, total


def upsample_backward(
    build: Builder, gradient: TensorValue, size: Sequence[Integer], axes: list[Axis], kind: Filter
) -> TensorValue:
    """The gradient of an image of `size` from that of its interpolation along the last axes."""
    rank, dtype = len(axes), compute_dtype(gradient.dtype)
    if not gradient.dtype.is_floating_point:
        raise CannotLower("whole numbers have no gradient")
    ranges = [range_of(axis, kind) for axis in axes]

    def element(position: Position, step: Position) -> Any:
        image = position[-rank:]
        results = tuple(near.at(i, k) for near, i, k in zip(ranges, image, step, strict=True))
        pairs = [_weight_of(kind.taps(axis, j, dtype), i) for axis, j, i in zip(axes, results, image, strict=True)]
        conditions = [inside_of(results, [axis.result for axis in axes]), *(is_tap for is_tap, _ in pairs)]
        mask = all_of([condition for condition in conditions if condition is not None])
        share = gradient.load((*position[:-rank], *results), mask)
        for _, weight in pairs:
            share = share if weight is None else share * weight
        return ops.reduce("sum", share)

    shape = tuple(size)
    if 0 in shape:
        return constant(0, shape, gradient.dtype)
    return build.reduction(shape, gradient.dtype, [near.count for near in ranges], element)


@lowers(aten.upsample_bilinear2d.default, aten.upsample_bicubic2d.default)
def of_whole_numbers(build: Builder, x: TensorValue, *_: Any) -> TensorValue:
    """Interpolation of floats is taken apart."""
    raise CannotLower("ATen rounds images of whole numbers at each step, which no loop of ours does")


def _backward(rank: int, name: str, kind: Filter) -> None:
    @lowers(getattr(aten, name).default)
    def lowering(
        build: Builder, gradient: TensorValue, output_size: Sequence[Integer], input_size: Sequence[Integer],
        *given: Any,
    ) -> TensorValue:  # fmt: skip
        # Those that smooth are told whether corners are aligned before they are told scales.
        aligns_corners, scales = (False, given) if kind.shift is not None else (given[0], given[1:])
        sizes = zip_longest(input_size[-rank:], gradient.shape[-rank:], scales)
        axes = [Axis(image, result, scale, aligns_corners) for image, result, scale in sizes]
        return upsample_backward(build, gradient, input_size, axes, kind)


for _rank, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    _backward(_rank, f"upsample_nearest{_rank}d_backward", NEAREST)
    _backward(_rank, f"_upsample_nearest_exact{_rank}d_backward", NEAREST_EXACT)
    _backward(_rank, f"upsample_{_name}_backward", LINEAR)
