"""Operators that TorchInductor lowers and that no sample of the database reaches by name, each in a call of its own.

The database calls PyTorch's public functions, which go to other operators on the way (`expand_as` to `expand`); the
lists of tensors of optimisers (`_foreach_add`) have a database of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Program = Callable[[Tensor, Tensor, Tensor], Any]

BITS = "__and__ __or__ __xor__ __lshift__ __rshift__ bitwise_and bitwise_or bitwise_xor bitwise_left_shift \
bitwise_right_shift".split()
UNARY_LISTS = "abs clone neg reciprocal rsqrt sign sqrt".split()
BINARY_LISTS = "add sub mul div maximum minimum clamp_max clamp_min pow copy".split()


def _bits(name: str) -> Program:
    return lambda x, y, i: getattr(aten, name)(i, i % 3)


def _on_lists(name: str, count: int) -> Program:
    def program(x: Tensor, y: Tensor, i: Tensor) -> Any:
        lists = [[x.abs(), y.abs()[0], x + 1], [y, x[0], x * y], [x * 2, y[0], y + 4]][:count]
        return getattr(aten, f"_foreach_{name}")(*lists)

    return program


def _upsampled(name: str, rank: int) -> Program:
    return lambda x, y, i: getattr(aten, f"{name}{rank}d")(x.reshape(1, 2, *([2] * (rank - 1)), -1), [5] * rank)


#: By the ATen operator, a function of two float32 matrices and one of int64, all of 4 x 8.
PROGRAMS: dict[str, Program] = {
    **{name: _bits(name) for name in BITS},
    **{f"_foreach_{name}": _on_lists(name, 1) for name in UNARY_LISTS},
    **{f"_foreach_{name}": _on_lists(name, 2) for name in BINARY_LISTS},
    **{f"_foreach_{name}": _on_lists(name, 3) for name in ("addcmul", "addcdiv")},
    **{f"{name}{rank}d": _upsampled(name, rank)
       for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)},
    "upsample_nearest2d_backward": lambda x, y, i: aten.upsample_nearest2d_backward(
        x.reshape(1, 2, 4, 4), [4, 4], [1, 2, 2, 2]
    ),
    "square": lambda x, y, i: aten.square(x),
    "true_divide": lambda x, y, i: aten.true_divide(x, y),
    "special_erf": lambda x, y, i: aten.special_erf(x),
    "expand_as": lambda x, y, i: aten.expand_as(x[:1], y),
    "reshape": lambda x, y, i: aten.reshape(x, [8, 4]) + 1,
    "lift": lambda x, y, i: aten.lift(x) + 1,
    "broadcast_tensors": lambda x, y, i: aten.broadcast_tensors([x[0], y]),
    "_neg_view": lambda x, y, i: aten._neg_view(x) + 1,
    "_convolution": lambda x, y, i: aten._convolution(
        x.reshape(1, 4, 8), y.reshape(2, 4, 4), None, [1], [0], [1], False, [0], 1, False, False, True, True
    ),
    "_int_mm": lambda x, y, i: aten._int_mm(
        i.to(torch.int8).repeat(5, 2), i.to(torch.int8).repeat(2, 2).t().contiguous()[:, :8].repeat(1, 1)
    ),
    "_functional_assert_async": lambda x, y, i: (aten._assert_async.msg((x == x).all(), "x is NaN"), x + 1)[1],
    "_assert_async": lambda x, y, i: (aten._assert_async((x == x).all()), x + 1)[1],
    "_unsafe_view": lambda x, y, i: aten._unsafe_view(x, [8, 4]) + 1,
}  # fmt: skip


def tensors(device: str) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 8, generator=generator) for _ in range(2))
    return x.to(device), y.to(device), torch.randint(0, 10, (4, 8), generator=generator).to(device)


def function(name: str) -> Callable[..., list[Any]]:
    def flat(*tensors: Tensor) -> list[Any]:
        result = PROGRAMS[name](*tensors)
        return list(result) if isinstance(result, list | tuple) else [result]

    return flat
