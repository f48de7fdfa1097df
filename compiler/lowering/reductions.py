"""Reductions: one node each, whose body may go on with the reduced value (a mean is a sum and a quotient)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.ir.index import ZERO
from compiler.ir.ops import compute_dtype, ops
from compiler.ir.positions import flatten
from compiler.ir.size import Integer, is_below, product, symbols_of
from compiler.lowering.builder import Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue, constant
from compiler.lowering.views import wrap_all

aten = torch.ops.aten


class Plan:
    """Which dimensions of a tensor are reduced, and how a point of the result and one of the loops make a position."""

    def __init__(self, x: TensorValue, dims: Any, keepdim: bool) -> None:
        self.dims = sorted(wrap_all(dims, x.rank))
        self.rank = x.rank
        self.sizes = tuple(x.shape[dim] for dim in self.dims)
        self.keepdim = keepdim
        kept = [1 if axis in self.dims else size for axis, size in enumerate(x.shape)]
        self.kept_shape = tuple(kept)
        self.shape = self.kept_shape if keepdim else tuple(s for p, s in enumerate(kept) if p not in self.dims)

    def full(self, position: Position) -> Position:
        """A position of the result with every dimension of the operand, zero where it is reduced."""
        if self.keepdim:
            return position
        outer = iter(position)
        return tuple(ZERO if axis in self.dims else next(outer) for axis in range(self.rank))

    def combine(self, position: Position, reduced: Position) -> Position:
        inner = dict(zip(self.dims, reduced, strict=True))
        return tuple(inner.get(axis, index) for axis, index in enumerate(self.full(position)))

    @property
    def count(self) -> Integer:
        return product(self.sizes)


def reduce_values(
    build: Builder, x: TensorValue, plan: Plan, kind: str, dtype: torch.dtype, *, accumulate: torch.dtype,
    identity: bool | int | float | None, before: Callable[[Any, Position], Any] = lambda value, position: value,
    after: Callable[[Any], Any] = lambda value: value, label: str = "",
) -> TensorValue:  # fmt: skip
    """`after(reduce kind of before(element, position of the result))`, computed in the dtype `accumulate`."""
    if 0 in plan.shape or plan.count == 0:
        if identity is None and 0 not in plan.shape:
            raise CannotLower("it reduces no elements to a value that it does not have")
        start = 0 if identity is None else identity
        return build.pointwise(plan.shape, dtype, lambda position: after(ops.constant(start, accumulate)))

    def element(position: Position, reduced: Position) -> Any:
        value = x.load(plan.combine(position, reduced)).to(accumulate)
        return after(ops.reduce(kind, before(value, position)))

    return build.reduction(plan.shape, dtype, plan.sizes, element, label=label)


def sum_dtype(x: TensorValue, dtype: torch.dtype | None) -> torch.dtype:
    """Integers and bools add up in int64."""
    if dtype is not None:
        return dtype
    return x.dtype if x.dtype.is_floating_point else torch.int64


def _total(kind: str, identity: int, on_bool: str) -> None:
    @lowers(getattr(aten, kind))
    def lowering(
        build: Builder, x: TensorValue, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
    ) -> TensorValue:
        result = sum_dtype(x, dtype)
        if result == torch.bool:
            return _truth(build, on_bool, x, dim, keepdim)
        plan = Plan(x, dim, keepdim)
        return reduce_values(build, x, plan, kind, result, accumulate=compute_dtype(result), identity=identity)


_total("sum", 0, "any")
_total("prod", 1, "all")


@lowers(aten.mean)
def mean(
    build: Builder, x: TensorValue, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorValue:
    return _mean(build, x, Plan(x, dim, keepdim), dtype or x.dtype)


def _mean(build: Builder, x: TensorValue, plan: Plan, dtype: torch.dtype, label: str = "") -> TensorValue:
    compute = compute_dtype(dtype)
    return reduce_values(
        build, x, plan, "sum", dtype, accumulate=compute, identity=0, label=label,
        after=lambda total: total / plan.count,
    )  # fmt: skip


# --- the largest and the smallest


def _extreme(build: Builder, kind: str, x: TensorValue, dims: Any, keepdim: bool) -> TensorValue:
    if x.dtype == torch.bool:
        kind = {"max": "any", "min": "all"}[kind]
    plan = Plan(x, dims, keepdim)
    return reduce_values(build, x, plan, kind, x.dtype, accumulate=compute_dtype(x.dtype), identity=None)


def _check_not_empty(plan: Plan) -> None:
    """Eager refuses to look for an extreme among no elements. (Not so for amax, whose result softmax does not use where
    there are none.)"""
    if any(symbol.is_late for size in plan.sizes for symbol in symbols_of(size)) and not is_below(0, plan.count):
        raise CannotLower("only a run tells whether there is an element at all, which the library's call checks")


def _position_of_extreme(
    build: Builder, kind: str, x: TensorValue, dim: int | None, keepdim: bool, label: str = ""
) -> TensorValue:
    plan = Plan(x, dim, keepdim)
    if plan.count == 0 and 0 not in plan.shape:
        raise CannotLower("it looks for a position among no elements")
    if 0 in plan.shape:
        return constant(0, plan.shape, torch.int64)
    _check_not_empty(plan)
    # A bool has no order in the loop IR; as a number it has.
    compute = torch.int32 if x.dtype == torch.bool else compute_dtype(x.dtype)

    def element(position: Position, reduced: Position) -> Any:
        value = x.load(plan.combine(position, reduced)).to(compute)
        return ops.reduce(kind, value, ops.index_value(flatten(reduced, plan.sizes)))

    return build.reduction(plan.shape, torch.int64, plan.sizes, element, label=label)


def _extremes(kind: str) -> None:
    @lowers(getattr(aten, f"a{kind}"))
    def extreme(build: Builder, x: TensorValue, dim: Any = None, keepdim: bool = False) -> TensorValue:
        return _extreme(build, kind, x, dim, keepdim)

    @lowers(getattr(aten, kind).default)
    def extreme_of_all(build: Builder, x: TensorValue) -> TensorValue:
        _check_not_empty(Plan(x, None, False))
        return _extreme(build, kind, x, None, False)

    @lowers(getattr(aten, f"arg{kind}"))
    def position(build: Builder, x: TensorValue, dim: int | None = None, keepdim: bool = False) -> TensorValue:
        return _position_of_extreme(build, f"arg{kind}", x, dim, keepdim)

    @lowers(getattr(aten, kind).dim)
    def with_position(
        build: Builder, x: TensorValue, dim: int, keepdim: bool = False
    ) -> tuple[TensorValue, TensorValue]:
        value = _extreme(build, kind, x, dim, keepdim)
        return value, _position_of_extreme(build, f"arg{kind}", x, dim, keepdim, "indices")


for _kind in ("max", "min"):
    _extremes(_kind)


# --- truth


def _truth(build: Builder, kind: str, x: TensorValue, dims: Any, keepdim: bool) -> TensorValue:
    # uint8 keeps its dtype, a rule from the time before PyTorch had bool.
    dtype = torch.uint8 if x.dtype == torch.uint8 else torch.bool
    return reduce_values(
        build, x, Plan(x, dims, keepdim), kind, dtype, accumulate=torch.bool, identity=kind == "all"
    )  # fmt: skip


@lowers(aten.any)
def any_(build: Builder, x: TensorValue, dim: Any = None, keepdim: bool = False) -> TensorValue:
    return _truth(build, "any", x, dim, keepdim)


# --- variance, in two passes: a mean, then the mean square of the distances to it


@lowers(aten.var.correction, aten.var_mean.correction)
def variance(
    build: Builder, x: TensorValue, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> TensorValue | tuple[TensorValue, TensorValue]:
    """The mean stays in float32 for half-precision operands until the variance has used it."""
    compute, plan = compute_dtype(x.dtype), Plan(x, dim, keepdim)
    average = _mean(build, x, Plan(x, dim, True), compute, label="mean")
    less = 1 if correction is None else int(correction) if correction == int(correction) else correction
    divisor = max(plan.count - less, 0)

    def squared_distance(value: Any, position: Position) -> Any:
        return ops.square(value - average.load(plan.full(position)))

    result = reduce_values(
        build, x, plan, "sum", x.dtype, accumulate=compute, identity=0, before=squared_distance,
        after=lambda total: total / divisor,
    )  # fmt: skip
    if not isinstance(build.eager, list | tuple):
        return result
    mean_value = average.view(plan.shape, plan.full)
    if compute != x.dtype:
        mean_value = build.pointwise(plan.shape, x.dtype, mean_value.load, label="mean_rounded")
    return result, mean_value
