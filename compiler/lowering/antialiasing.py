"""Interpolation without aliases: where an image becomes smaller, its filter grows as much, so no element is skipped.

The filter is applied along one axis after the other, as its weights multiply. Which elements a result is made of and
with what weights depends on sizes alone, so both are tables that the graph holds:

    result[j]  =  sum over k of  weights[j, k] * image[starts[j] + k]

The gradient is the same sum with the tables turned around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant, fixed

aten = torch.ops.aten

#: The weight of an element at a distance from a result, in float64.
Weight = Callable[[Tensor], Tensor]

#: Of the family of cubic filters, the one that ATen uses where it avoids aliases.
CUBIC = -0.5


def triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def cubic(x: Tensor) -> Tensor:
    x = x.abs()
    near = ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
    far = CUBIC * (((x - 5) * x + 8) * x - 4)
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


def lanczos(x: Tensor) -> Tensor:
    return torch.where(x.abs() < 3, torch.sinc(x) * torch.sinc(x / 3), 0.0)


#: By the operators' names: the filter, and how far it reaches.
FILTERS: dict[str, tuple[Weight, int]] = {
    "bilinear2d": (triangle, 1), "bicubic2d": (cubic, 2), "lanczos2d": (lanczos, 3),
}  # fmt: skip


def matrix(image: int, result: int, step: float, weight: Weight, reach: int) -> Tensor:
    """(result, image), float64: the weight of each element of the image in each result."""
    widening = max(step, 1.0)
    center = step * (torch.arange(result, dtype=torch.float64) + 0.5)
    first = (center - reach * widening + 0.5).trunc().clamp(min=0)[:, None]
    end = (center + reach * widening + 0.5).trunc().clamp(max=image)[:, None]
    element = torch.arange(image, dtype=torch.float64)[None, :]
    found = weight((element - center[:, None] + 0.5) / widening)
    found = torch.where((first <= element) & (element < end), found, 0.0)
    total = found.sum(1, keepdim=True)
    return torch.where(total == 0, found, found / total)


def tables(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Where the weights of each row of a matrix begin, and all rows from there to the end of the longest one."""
    is_used = weights != 0
    columns = torch.arange(weights.shape[1])
    starts = torch.where(is_used, columns, weights.shape[1]).amin(1)
    ends = torch.where(is_used, columns + 1, 0).amax(1)
    starts = torch.where(ends == 0, 0, starts)
    count = max(int((ends - starts).max()), 1)
    places = starts[:, None] + torch.arange(count)
    inside = places < weights.shape[1]
    return starts, torch.where(inside, weights.gather(1, places.clamp(max=weights.shape[1] - 1)), 0.0)


def _table(build: Builder, tensor: Tensor, label: str) -> TensorValue:
    value = build.add_constant(build.fresh_name(f"{build.origin}_{label}"), tensor)
    return build.move(value, build.device) if build.lies_elsewhere(value) else value


def weighted(build: Builder, x: TensorValue, at: int, weights: Tensor, dtype: torch.dtype, label: str) -> TensorValue:
    """`x` with its dimension `at` multiplied by a matrix of few weights a row."""
    starts, rows = tables(weights)
    compute, image = compute_dtype(x.dtype), fixed(x.shape[at])
    start, row = _table(build, starts, f"starts_{at}"), _table(build, rows.to(compute), f"weights_{at}")

    def element(position: Position, reduced: Position) -> Any:
        j, (k,) = position[at], reduced
        place = start.load((j,)) + ops.index_value(k)
        # Behind the end of the image, weights are zero.
        index = ops.indirect(ops.minimum(place, image - 1), image)
        value = x.load((*position[:at], index, *position[at + 1 :]))
        weight = row.load((j, k))
        is_part = weight != 0.0
        return ops.reduce("sum", ops.where(is_part, weight * value, 0.0))

    shape = (*x.shape[:at], weights.shape[0], *x.shape[at + 1 :])
    return build.reduction(shape, dtype, (rows.shape[1],), element, label=label)


def _matrices(
    name: str, image: Sequence[Any], result: Sequence[Any], aligns_corners: bool, scales: Sequence[float | None]
) -> list[Tensor]:
    """Of the rows and of the columns, (result, image) each."""
    weight, reach = FILTERS[name]
    found = []
    for place in (0, 1):
        size, wanted = fixed(image[place]), fixed(result[place])
        scale = scales[place] if place < len(scales) else None
        step = 1.0 / scale if scale is not None and scale > 0 else size / wanted
        if aligns_corners:
            step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
        found.append(matrix(size, wanted, step, weight, reach))
    return found


def _both_axes(build: Builder, x: TensorValue, down: Tensor, across: Tensor) -> TensorValue:
    if not x.dtype.is_floating_point:
        raise CannotLower("ATen computes whole numbers with rounded weights")
    if 0 in x.shape:
        return constant(0, (*x.shape[:2], down.shape[0], across.shape[0]), x.dtype)
    rows = weighted(build, x, 3, across, compute_dtype(x.dtype), "rows")
    return weighted(build, rows, 2, down, x.dtype, "")


def _without_aliases(name: str) -> None:
    @lowers(getattr(aten, f"_upsample_{name}_aa").default)
    def forward(
        build: Builder, x: TensorValue, output_size: Sequence[Integer], align_corners: bool, *scales: float | None
    ) -> TensorValue:
        return _both_axes(build, x, *_matrices(name, x.shape[2:], output_size, align_corners, scales))

    @lowers(getattr(aten, f"_upsample_{name}_aa_backward").default)
    def backward(
        build: Builder, gradient: TensorValue, output_size: Sequence[Integer], input_size: Sequence[Integer],
        align_corners: bool, *scales: float | None,
    ) -> TensorValue:  # fmt: skip
        down, across = _matrices(name, input_size[2:], output_size, align_corners, scales)
        return _both_axes(build, gradient, down.t(), across.t())


for _name in FILTERS:
    # torch 2.11 has no lanczos.
    if hasattr(aten, f"_upsample_{_name}_aa"):
        _without_aliases(_name)
