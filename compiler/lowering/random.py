"""Random numbers: a counter-based generator, so that each element is computed where it is used and needs no state.

Each random operator has a seed of its own, an element of one small buffer that is drawn from torch's generator at the
start of every run. The element's position in its tensor is the counter.

Numbers of which nothing counts but whether they are above a bound, as those of a dropout, are drawn eight at a time
instead of four, and with fewer rounds (`ops.rand_compared`).
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.ir.index import Index
from compiler.ir.ops import ops
from compiler.ir.positions import flatten
from compiler.ir.size import Integer
from compiler.lowering.builder import Builder
from compiler.lowering.loop_builder import SEEDS
from compiler.lowering.registry import lowers
from compiler.lowering.values import CannotLower, Position, TensorValue

aten = torch.ops.aten

#: Bounds, below half and above, from which on both of two numbers that share a word are compared all but independently.
_LEAST_BOUND = 1 / 32
_COMPARISONS = (aten.gt.Scalar, aten.ge.Scalar, aten.lt.Scalar, aten.le.Scalar)


def _random(
    build: Builder, shape: tuple[Integer, ...], dtype: torch.dtype, op: str, finish: Any = None, label: str = ""
) -> TensorValue:
    if not dtype.is_floating_point and finish is None:
        raise CannotLower(f"it draws random numbers of {dtype}")
    number = build.next_seed()

    def element(position: Position) -> Any:
        seed = ops.load(SEEDS, Index.number(number), torch.int64)
        value = getattr(ops, op)(seed, flatten(position, shape))
        return value if finish is None else finish(value, position)

    return build.pointwise(shape, dtype, element, label=label)


def _result(build: Builder) -> tuple[tuple[Integer, ...], torch.dtype]:
    return build.eager.shape, build.eager.dtype


@lowers(aten.rand.default, aten.rand_like.default)
def rand(build: Builder, size: Any, **_: Any) -> TensorValue:
    return _random(build, *_result(build), _uniform(build))


def _uniform(build: Builder) -> str:
    """What draws the numbers of the node that is being lowered, from what is done with them."""
    users = () if build.node is None else tuple(build.node.users)
    are_compared = [user.target in _COMPARISONS and _is_shared_at(user.args[1]) for user in users]
    return "rand_compared" if are_compared and all(are_compared) else "rand"


def _is_shared_at(bound: Any) -> bool:
    return isinstance(bound, float) and _LEAST_BOUND <= bound <= 1 - _LEAST_BOUND


@lowers(aten.randn.default, aten.randn_like.default)
def randn(build: Builder, size: Any, **_: Any) -> TensorValue:
    return _random(build, *_result(build), "randn")


@lowers(aten.randint.default, aten.randint.low, aten.randint_like.default, aten.randint_like.low_dtype,
        aten.random.to, getattr(aten.random, "from"))  # fmt: skip
def randint(build: Builder, *bounds: Any, **_: Any) -> TensorValue:
    """A whole number of `low` to `high - 1`."""
    # The bounds are among sizes and a tensor: `high, size`, `low, high, size`, or `x, high` and `x, low, high`.
    numbers = [bound for bound in bounds if isinstance(bound, int)]
    low, high = numbers if len(numbers) == 2 else (0, numbers[0])
    return _whole_number(build, low, high - low)


@lowers(aten.random.default)
def random(build: Builder, x: TensorValue, **_: Any) -> TensorValue:
    """All whole numbers from 0 on that the dtype holds, of a float those that it tells apart."""
    if x.dtype.is_floating_point:
        return _whole_number(build, 0, int(2 / torch.finfo(x.dtype).eps) + 1)
    return _whole_number(build, 0, 2 if x.dtype == torch.bool else torch.iinfo(x.dtype).max + 1)


def _whole_number(build: Builder, low: int, count: int) -> TensorValue:
    """A float32 in [0, 1) has 24 digits: among few numbers one is enough to reach each alike, among more it takes the
    digits of two, scaled in float64."""
    if not 0 < count <= 2**32:
        raise CannotLower("it draws among more numbers than two float32 tell apart")
    shape, dtype = _result(build)
    fine = torch.float32 if count <= 2**20 else torch.float64
    second = None if fine == torch.float32 else build.next_seed()

    def finish(value: Any, position: Position) -> Any:
        value = value.to(fine)
        if second is not None:
            digits = ops.rand(ops.load(SEEDS, Index.number(second), torch.int64), flatten(position, shape))
            leading = ops.floor(value * 2.0**24)
            value = (leading + digits.to(fine)) * 2.0 ** (-24)
        scaled = ops.floor(value * count)
        drawn = ops.minimum(scaled.to(torch.int64), count - 1)
        return (drawn + low).to(dtype)

    return _random(build, shape, dtype, "rand", finish)
