"""Operators on lists of tensors (`_foreach_add`), which optimisers are made of: one node a tensor, free to fuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.lowering import logic, pointwise, powers
from compiler.lowering.builder import Builder
from compiler.lowering.promotion import Kind, elementwise
from compiler.lowering.registry import LOWERINGS, lowers
from compiler.lowering.values import CannotLower, TensorValue

aten = torch.ops.aten

#: Each tensor on its own, by the lowering of the operator on one.
UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor lgamma log log10 log1p log2 neg reciprocal round
    rsqrt sigmoid sign sin sinh sqrt tan tanh trunc clone""".split()


def power(build: Builder, x: Any, y: Any) -> TensorValue:
    return powers.pow_tensor(build, x, y) if isinstance(y, TensorValue) else powers.pow_scalar(build, x, y)


def lerp(build: Builder, x: TensorValue, end: TensorValue, weight: Any) -> TensorValue:
    """From the nearer end, as ATen does, so that a weight of 1 gives `end`."""

    def function(a: Any, b: Any, w: Any) -> Any:
        return ops.where(ops.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w))

    return elementwise(build, Kind.DEFAULT, function, x, end, weight)


def _plus_scaled(op: str) -> Callable[..., TensorValue]:
    """addcmul and addcdiv: x + value * (a op b)."""

    def function(build: Builder, x: TensorValue, a: TensorValue, b: TensorValue, value: Any = 1) -> TensorValue:
        if not x.dtype.is_floating_point:
            raise CannotLower("it scales integers")

        def element(u: Any, v: Any, w: Any, factor: Any) -> Any:
            return u + getattr(ops, op)(factor * v, w)

        return elementwise(build, Kind.DEFAULT, element, x, a, b, value)

    return function


#: Several operands, each a list or one for all.
FUNCTIONS: dict[str, Callable[..., TensorValue]] = {
    "add": pointwise.add,
    "sub": pointwise.sub,
    "mul": pointwise.mul,
    "div": pointwise.div,
    "maximum": pointwise.maximum,
    "minimum": pointwise.minimum,
    "clamp_max": pointwise.clamp_max,
    "clamp_min": pointwise.clamp_min,
    "pow": power,
    "copy": logic.copy,
    "lerp": lerp,
    "addcmul": _plus_scaled("mul"),
    "addcdiv": _plus_scaled("truediv"),
}


def _lower_foreach(name: str, function: Callable[..., TensorValue]) -> None:
    packet = getattr(aten, f"_foreach_{name}", None)
    if packet is None:
        return

    @lowers(packet)
    def lowering(build: Builder, *operands: Any, **settings: Any) -> tuple[TensorValue, ...]:
        factors = [settings.pop(key) for key in ("value", "scalars") if key in settings]
        count = next(len(operand) for operand in operands if _is_list(operand))
        spread = [_one_for_each(operand, count, is_table=place > 0 and name.startswith("addc") and place == 3)
                  for place, operand in enumerate([*operands, *factors])]  # fmt: skip
        # A result takes the layout of its own tensor, of which eager's description is one of several.
        whole, results = build.eager, []
        for place, own in enumerate(zip(*spread, strict=True)):
            build.eager = whole[place]
            results.append(function(build, *own, **{k: v for k, v in settings.items() if k == "alpha"}))
        build.eager = whole
        return tuple(results)


def _is_list(operand: Any) -> bool:
    return isinstance(operand, list | tuple)


def _one_for_each(operand: Any, count: int, is_table: bool) -> Sequence[Any]:
    """The operand of each tensor; a table is a tensor with a number for each."""
    if _is_list(operand):
        return operand  # type: ignore[no-any-return]
    if is_table and isinstance(operand, TensorValue) and operand.rank:
        return [_number_at(operand, place) for place in range(count)]
    return [operand] * count


def _number_at(table: TensorValue, place: int) -> TensorValue:
    return table.view((), lambda position: (Index.number(place),))


def _single(name: str) -> Callable[..., TensorValue]:
    return LOWERINGS[getattr(aten, name).default]


for _name in UNARY:
    _lower_foreach(_name, _single(_name))
for _name, _function in FUNCTIONS.items():
    _lower_foreach(_name, _function)
