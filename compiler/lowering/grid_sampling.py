"""Grid sampling: images that are interpolated at the points of a grid, and the gradients of both.

A grid gives places from -1 to 1 along each axis, the last axis of the image first. An element of the result is a sum of
a few elements of the image around its place, its taps:

    result[n, c, p]  =  sum over taps of  (product of their weights along the axes) * image[n, c, taps]

What lies outside of the image counts as zero, or the place is moved inside: to the border, or reflected at it. The
gradient of the image is scattered to the taps; that of the grid sums over the channels.
(PyTorch takes the sampling of two dimensions apart itself.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.indexing import all_of
from compiler.lowering.loop_builder import Update
from compiler.lowering.registry import lowers
from compiler.lowering.scatter import scatter_into
from compiler.lowering.upsampling import CUBIC, cubic_weights
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten

#: ATen's numbers for the ways to interpolate, and for what lies outside.
LINEAR, NEAREST, CUBIC_MODE = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


@dataclass(frozen=True)
class Tap:
    """An element of the image along one axis: its place (int64, 0 where it is outside), whether it is inside, its
    weight, and by how much that grows with the place of the result (None: 1 and 0)."""

    place: Any
    is_inside: Any
    weight: Any = None
    slope: Any = None


@dataclass(frozen=True)
class Axis:
    """One axis of an image of `size` elements, sampled in one of ATen's ways, in floats of `dtype`."""

    size: Integer
    mode: int
    padding: int
    aligns_corners: bool
    dtype: torch.dtype

    @property
    def extent(self) -> Any:
        """How far a grid reaches from -1 to 1, in elements."""
        return ops.constant(self.size - 1 if self.aligns_corners else self.size, self.dtype)

    @property
    def last(self) -> Any:
        return ops.constant(self.size - 1, self.dtype)

    def unnormalized(self, coordinate: Any) -> Any:
        """The place that a number of the grid stands for."""
        scaled = (coordinate + 1.0) * (self.extent * 0.5)
        return scaled if self.aligns_corners else scaled - 0.5

    def moved_inside(self, place: Any) -> tuple[Any, Any]:
        """The place after padding, and by how much it grows with the place before (None: as much)."""
        if self.padding == ZEROS:
            return place, None
        slope = None
        if self.padding == REFLECTION:
            place, slope = self.reflected(place)
        is_between = (place > 0.0) & (place < self.last)
        slope = ops.where(is_between, ops.constant(1.0, self.dtype) if slope is None else slope, 0.0)
        return ops.minimum(ops.maximum(place, 0.0), self.last), slope

    def reflected(self, place: Any) -> tuple[Any, Any]:
        """The place, reflected at the borders (at the corners' centers if these are aligned) until it is between."""
        low = 0.0 if self.aligns_corners else -0.5
        # An image of one element has no room between its corners; whatever is there, is at 0.
        span = ops.maximum(self.extent, 1.0)
        distance = place - low
        sign = ops.where(distance < 0.0, ops.constant(-1.0, self.dtype), 1.0)
        distance = ops.abs(distance)
        rest = ops.fmod(distance, span)
        flips = ops.floor(distance / span)
        is_even = ops.fmod(flips, 2.0) == 0.0
        found = ops.where(is_even, rest + low, span - rest + low)
        return found, ops.where(is_even, sign, -sign)

    def tap(self, place: Any, weight: Any = None, slope: Any = None) -> Tap:
        """The element at a whole place."""
        is_inside = (place >= 0.0) & (place <= self.last)
        return Tap(ops.where(is_inside, place, 0.0).to(torch.int64), is_inside, weight, slope)

    def taps(self, coordinate: Any) -> list[Tap]:
        """The elements that a result at a number of the grid is made of."""
        place = self.unnormalized(coordinate)
        if self.mode == CUBIC_MODE:
            return self._cubic_taps(place)
        place, slope = self.moved_inside(place)
        if self.mode == NEAREST:
            return [self.tap(ops.round(place))]
        first = ops.floor(place)
        behind = place - first
        growth = self.extent * 0.5 if slope is None else self.extent * 0.5 * slope
        return [self.tap(first, 1.0 - behind, -growth), self.tap(first + 1.0, behind, growth)]

    def _cubic_taps(self, place: Any) -> list[Tap]:
        """Weights come from the place as it is; each of the four elements is moved inside by itself."""
        first = ops.floor(place)
        behind = place - first
        growth = self.extent * 0.5
        weights = zip((-1.0, 0.0, 1.0, 2.0), cubic_weights(behind), cubic_slopes(behind), strict=True)
        found = []
        for step, weight, slope in weights:
            element, _ = self.moved_inside(first + step)
            # A place that was reflected at a border lies between two elements only by rounding.
            found.append(self.tap(ops.round(element), weight, slope * growth))
        return found


def cubic_slopes(distance: Any) -> list[Any]:
    """By how much each of `cubic_weights` grows with the distance."""

    def near(x: Any) -> Any:
        return (3 * (CUBIC + 2) * x - 2 * (CUBIC + 3)) * x

    def far(x: Any) -> Any:
        return (3 * CUBIC * x - 10 * CUBIC) * x + 8 * CUBIC

    rest = 1.0 - distance
    return [far(distance + 1.0), near(distance), -near(rest), -far(rest + 1.0)]


class Sampling:
    """A grid of places in an image."""

    def __init__(self, image: TensorValue, grid: TensorValue, mode: int, padding: int, aligns_corners: bool) -> None:
        self.image, self.grid, self.mode = image, grid, mode
        self.rank = image.rank - 2
        self.dtype = compute_dtype(image.dtype)
        if mode == CUBIC_MODE and self.rank != 2:
            raise CannotLower("cubic sampling is for images of two dimensions")
        if not image.dtype.is_floating_point:
            raise CannotLower("it samples whole numbers")
        self.axes = [Axis(size, mode, padding, aligns_corners, self.dtype) for size in image.shape[2:]]

    @property
    def taps_an_axis(self) -> int:
        return {LINEAR: 2, NEAREST: 1, CUBIC_MODE: 4}[self.mode]

    def taps(self, batch: Index, place: Sequence[Index]) -> list[list[Tap]]:
        """Those of the result at a place, by axis of the image."""
        return [
            axis.taps(self.grid.load((batch, *place, Index.number(self.rank - 1 - number))))
            for number, axis in enumerate(self.axes)
        ]

    def read(self, batch: Index, channel: Index, taps: Sequence[Tap]) -> Any:
        """The element of the image at one tap an axis, or zero."""
        place = tuple(ops.indirect(tap.place, axis.size) for tap, axis in zip(taps, self.axes, strict=True))
        return self.image.load((batch, channel, *place), all_of([tap.is_inside for tap in taps]))


def _product(factors: Sequence[Any]) -> Any:
    """Of those that are given, or None."""
    given = [factor for factor in factors if factor is not None]
    return reduce(ops.mul, given) if given else None


def _times(value: Any, factor: Any) -> Any:
    return value if factor is None else value * factor


def _sampled(build: Builder, sampling: Sampling) -> TensorValue:
    """One node: every element of the result adds up its taps."""
    grid = sampling.grid

    def element(position: Position) -> Any:
        batch, channel, *place = position
        taps = sampling.taps(batch, place)
        parts = (_times(sampling.read(batch, channel, t), _product([tap.weight for tap in t])) for t in product(*taps))
        return reduce(ops.add, parts)

    return build.pointwise((*sampling.image.shape[:2], *grid.shape[1:-1]), sampling.image.dtype, element)


def _gradient_of_image(build: Builder, gradient: TensorValue, sampling: Sampling) -> TensorValue:
    """One scatter of each result's gradient to each of its taps, which are the outermost loops."""
    image, rank, count = sampling.image, sampling.rank, sampling.taps_an_axis

    def chosen(taps: Sequence[Tap], number: Index, part: Callable[[Tap], Any]) -> Any:
        """What belongs to the tap of a number that a loop gives."""
        found = part(taps[0])
        for place, tap in enumerate(taps[1:], 1):
            is_it = ops.index_value(number) == place
            found = ops.where(is_it, part(tap), found)
        return found

    def update(position: Position) -> Update:
        numbers, (batch, channel, *place) = position[:rank], position[rank:]
        share, where, inside = gradient.load((batch, channel, *place)), [], []
        for axis, number, taps in zip(sampling.axes, numbers, sampling.taps(batch, place), strict=True):
            where.append(ops.indirect(chosen(taps, number, lambda tap: tap.place), axis.size))
            inside.append(chosen(taps, number, lambda tap: tap.is_inside))
            if taps[0].weight is not None:
                share = share * chosen(taps, number, lambda tap: tap.weight)
        return (batch, channel, *where), share, all_of(inside)

    sources = (*[count] * rank, *gradient.shape)
    return scatter_into(build, constant(0, image.shape, image.dtype), sources, "add", update, label="image")


def _gradient_of_grid(build: Builder, gradient: TensorValue, sampling: Sampling) -> TensorValue:
    """One sum over the channels: how much the result grows with the place along the axis that an element is for."""
    grid, rank = sampling.grid, sampling.rank
    if sampling.mode == NEAREST or 0 in gradient.shape:
        return constant(0, grid.shape, grid.dtype)

    def growth(values: Sequence[tuple[tuple[Tap, ...], Any]], along: int) -> Any:
        parts = (
            value * _product([tap.slope if axis == along else tap.weight for axis, tap in enumerate(taps)])
            for taps, value in values
        )
        return reduce(ops.add, parts)

    def element(position: Position, reduced: Position) -> Any:
        (batch, *place, component), (channel,) = position, reduced
        values = [(taps, sampling.read(batch, channel, taps)) for taps in product(*sampling.taps(batch, place))]
        total = growth(values, rank - 1)
        for number in range(1, rank):
            is_it = ops.index_value(component) == number
            total = ops.where(is_it, growth(values, rank - 1 - number), total)
        return ops.reduce("sum", gradient.load((batch, channel, *place)) * total)

    return build.reduction(grid.shape, grid.dtype, (sampling.image.shape[1],), element, label="grid")


def _sampler_backward(target: Any) -> None:
    @lowers(target)
    def lowering(
        build: Builder, gradient: TensorValue, image: TensorValue, grid: TensorValue, interpolation_mode: int,
        padding_mode: int, align_corners: bool, output_mask: Sequence[bool],
    ) -> tuple[TensorValue | None, TensorValue]:  # fmt: skip
        sampling = Sampling(image, grid, interpolation_mode, padding_mode, align_corners)
        of_image = _gradient_of_image(build, gradient, sampling) if output_mask[0] else None
        return of_image, _gradient_of_grid(build, gradient, sampling)


@lowers(aten.grid_sampler_3d.default)
def grid_sampler_3d(
    build: Builder, image: TensorValue, grid: TensorValue, interpolation_mode: int, padding_mode: int,
    align_corners: bool,
) -> TensorValue:  # fmt: skip
    return _sampled(build, Sampling(image, grid, interpolation_mode, padding_mode, align_corners))


_sampler_backward(aten.grid_sampler_2d_backward.default)
_sampler_backward(aten.grid_sampler_3d_backward.default)
