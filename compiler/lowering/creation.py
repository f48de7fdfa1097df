"""Tensors made from nothing: formulas of the position, which become a node only where memory must hold them.

Their dtypes are those of eager's results, which know the defaults that were in force.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.index import ZERO, Index
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant

aten = torch.ops.aten


def unwritten_number(dtype: torch.dtype) -> bool | int | float:
    """What memory holds that nobody has written yet, which may be anything; under `torch.use_deterministic_algorithms`
    it is NaN, or the largest integer, so that whoever reads it sees that it did."""
    is_filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    if not is_filled or not torch.are_deterministic_algorithms_enabled():
        return 0
    return float("nan") if dtype.is_floating_point else dtype == torch.bool or torch.iinfo(dtype).max


@lowers(aten.empty.memory_format, aten.empty_permuted, aten.empty_strided.default, aten.new_empty_strided)
def empty(build: Builder, *_: Any, **__: Any) -> TensorValue:
    dtype = build.eager.dtype
    return constant(unwritten_number(dtype), build.eager.shape, dtype)


@lowers(aten.full.default, aten.full_like, aten.fill.Scalar)
def full(build: Builder, _: Any, fill_value: Any, **__: Any) -> TensorValue:
    return constant(fill_value, build.eager.shape, build.eager.dtype)


@lowers(aten._efficientzerotensor)
def zeros_without_memory(build: Builder, *_: Any, **__: Any) -> TensorValue:
    """The zero tangents of forward-mode differentiation. Eager's have no memory that a kernel could read."""
    return constant(0, build.eager.shape, build.eager.dtype)


@lowers(aten.fill.Tensor)
def fill(build: Builder, x: TensorValue, value: TensorValue) -> TensorValue:
    return build.pointwise(x.shape, x.dtype, lambda position: value.load(()))


@lowers(aten.scalar_tensor)
def scalar_tensor(build: Builder, value: Any, **_: Any) -> TensorValue:
    return constant(value, (), build.eager.dtype)


def _progression(build: Builder, size: int, start: Any, step: Any, dtype: torch.dtype) -> TensorValue:
    def element(position: Position) -> Any:
        if float(start).is_integer() and float(step).is_integer():
            return ops.index_value(position[0] * int(step) + int(start))
        # Computed in float64 as eager does, so that a long progression does not drift.
        index = ops.index_value(position[0], torch.float64)
        return start + index * step

    return build.pointwise((size,), dtype, element)


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(build: Builder, *bounds: Any, **_: Any) -> TensorValue:
    start = bounds[0] if len(bounds) > 1 else 0
    step = bounds[2] if len(bounds) > 2 else 1
    dtype = build.eager.dtype
    if not dtype.is_floating_point and not all(float(number).is_integer() for number in (start, step)):
        raise CannotLower("it counts integers in fractional steps")
    return _progression(build, build.eager.shape[0], start, step, dtype)


@lowers(aten.linspace)
def linspace(build: Builder, start: Any, end: Any, steps: Integer, **_: Any) -> TensorValue:
    """`steps` numbers from one end to the other, both in the dtype of the result."""
    dtype, compute = build.eager.dtype, _dtype_of_line(build)

    def element(position: Position) -> Any:
        if steps == 1:
            return _end_of_line(start, dtype, compute)
        return _along(position[0], start, end, steps, dtype, compute)

    return build.pointwise((steps,), dtype, element)


def _dtype_of_line(build: Builder) -> torch.dtype:
    """What ATen computes a progression in: between integers in float64, but on a GPU in float32."""
    dtype = build.eager.dtype
    if dtype.is_floating_point:
        return compute_dtype(dtype)
    return torch.float64 if build.device.type == "cpu" else torch.float32


def _along(index: Index, start: Any, end: Any, steps: Integer, dtype: torch.dtype, compute: torch.dtype) -> Any:
    """The number at `index` of a line, from both ends to the middle, as ATen does it. (PyTorch's decompositions keep
    the fractions of ends whose result is of integers, which then are others than eager's.)"""
    first, last = (_end_of_line(bound, dtype, compute) for bound in (start, end))
    gaps = ZERO + steps - 1
    # In float64, where Triton's division is rounded once.
    length = (last - first).to(torch.float64)
    stride = (length / ops.index_value(gaps, torch.float64)).to(compute)
    is_first_half = ops.index_value(index * 2 + 1) < ops.index_value(gaps + 1)
    rising = first + stride * ops.index_value(index, compute)
    falling = last - stride * ops.index_value(gaps - index, compute)
    return ops.where(is_first_half, rising, falling)


def _end_of_line(bound: Any, dtype: torch.dtype, compute: torch.dtype) -> Any:
    """A number or a tensor of one element, rounded to `dtype`, as `compute`."""
    if isinstance(bound, TensorValue):
        return bound.load(()).to(dtype).to(compute)
    if not isinstance(bound, int | float):
        raise CannotLower("it goes between numbers that differ from call to call")
    return ops.constant(torch.tensor(bound, dtype=dtype).item(), compute)


@lowers(aten.eye.default, aten.eye.m)
def eye(build: Builder, *sizes: int, **_: Any) -> TensorValue:
    dtype = build.eager.dtype

    def element(position: Position) -> Any:
        return ops.eq(*(ops.index_value(index) for index in position)).to(dtype)

    return build.pointwise((sizes[0], sizes[-1]), dtype, element)


def _triangle(build: Builder, x: TensorValue, diagonal: int, comparison: str) -> TensorValue:
    def element(position: Position) -> Any:
        distance = ops.index_value(position[-1] - position[-2])
        is_kept = getattr(ops, comparison)(distance, ops.constant(diagonal, torch.int64))
        return ops.where(is_kept, x.load(position, is_kept), 0)

    return build.pointwise(x.shape, x.dtype, element)


@lowers(aten.tril)
def tril(build: Builder, x: TensorValue, diagonal: int = 0) -> TensorValue:
    return _triangle(build, x, diagonal, "le")


@lowers(aten.triu)
def triu(build: Builder, x: TensorValue, diagonal: int = 0) -> TensorValue:
    return _triangle(build, x, diagonal, "ge")
