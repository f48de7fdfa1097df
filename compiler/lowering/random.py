"""Random numbers: a counter-based generator, so that each element is computed where it is used and needs no state.

Each random operator has a seed of its own, an element of one small buffer that is drawn from torch's generator at the
start of every run. The element's place in its tensor is the counter.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.index import Index, flatten
from compiler.ir.ops import ops
from compiler.ir.size import Integer
from compiler.lowering.builder import SEEDS, Builder
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue

aten = torch.ops.aten


def _random(build: Builder, shape: tuple[Integer, ...], dtype: torch.dtype, op: str, finish: Any = None) -> TensorValue:
    if not dtype.is_floating_point and finish is None:
        raise CannotLower(f"it draws random numbers of {dtype}")
    place = build.next_seed()

    def element(position: Position) -> Any:
        seed = ops.load(SEEDS, Index.number(place), torch.int64)
        value = getattr(ops, op)(seed, flatten(position, shape))
        return value if finish is None else finish(value, position)

    return build.pointwise(shape, dtype, element)


def _result(build: Builder) -> tuple[tuple[Integer, ...], torch.dtype]:
    return build.eager.shape, build.eager.dtype


@lowers(aten.rand.default, aten.rand_like.default)
def rand(build: Builder, size: Any, **_: Any) -> TensorValue:
    return _random(build, *_result(build), "rand")


@lowers(aten.randn.default, aten.randn_like.default)
def randn(build: Builder, size: Any, **_: Any) -> TensorValue:
    return _random(build, *_result(build), "randn")


@lowers(aten.uniform.default)
def uniform(build: Builder, x: TensorValue, low: float = 0.0, high: float = 1.0, **_: Any) -> TensorValue:
    def finish(value: Any, position: Position) -> Any:
        scaled = ops.mul(value, ops.constant(high - low, torch.float32))
        return ops.add(scaled, ops.constant(low, torch.float32))

    return _random(build, x.shape, x.dtype, "rand", finish)


@lowers(aten.bernoulli.p)
def bernoulli_p(build: Builder, x: TensorValue, p: float = 0.5, **_: Any) -> TensorValue:
    return _random(
        build, x.shape, x.dtype, "rand", lambda value, position: ops.lt(value, ops.constant(p, torch.float32))
    )


@lowers(aten.bernoulli.default)
def bernoulli(build: Builder, x: TensorValue, **_: Any) -> TensorValue:
    return _random(
        build, x.shape, x.dtype, "rand",
        lambda value, position: ops.lt(value, ops.to_dtype(x.load(position), torch.float32)),
    )  # fmt: skip
