"""The table's part of quantisation, whose operators stay calls: ATen's way there and back, and those of `torch.ao`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor

from tests.lowering.operators import FLOATS, Operator, values

aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed
WIDE = (*FLOATS, torch.float64)


def _numbers(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    """(numbers, scales and zero points of the rows): ties, numbers out of range, and such as are none."""
    spread = values(dtype, 6, 9, low=-9, high=9)
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e4, 0.05, 0.15, 0.25, 0.0, -0.25])
    scales = values(torch.float32, 6, low=0.01, high=0.11)
    zero_points = torch.arange(6, dtype=torch.int32) - 3
    with_special = torch.cat([spread[:5], special.to(dtype)[None]])
    return [(spread, scales, zero_points), (spread.t().contiguous().t(), scales, zero_points),
            (with_special, scales, zero_points)]  # fmt: skip


def _finite(dtype: torch.dtype) -> list[tuple[Tensor, ...]]:
    return _numbers(dtype)[:2]


def _single(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of float32 where the judge gives it float64, which the operators do not take."""

    def of_singles(*tensors: Tensor) -> Any:
        return function(*(x.float() if x.dtype == torch.float64 else x for x in tensors))

    return of_singles


def _by_tensors(x: Tensor, s: Tensor, z: Tensor, is_on: int) -> Any:
    switch = torch.full((1,), is_on)
    return aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, s[:1], z[:1], switch, -8, 7)


def _by_channel(x: Tensor, s: Tensor, z: Tensor) -> Any:
    return aten.fake_quantize_per_channel_affine_cachemask(x, s.float(), z, 0, -128, 127)


def _gradient(x: Tensor, s: Tensor, z: Tensor) -> Any:
    pulled: Any = torch.func.vjp(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -20, 20), x)
    return pulled[1](x + 1)


THERE_AND_BACK = [
    Operator(
        "fake_quantize", lambda x, s, z: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -128, 127),
        _numbers, WIDE, falls_back=True,
    ),
    Operator("fake_quantize.tensors", lambda x, s, z: _by_tensors(x, s, z, 1), _finite, WIDE, falls_back=True),
    Operator("fake_quantize.tensors.off", lambda x, s, z: _by_tensors(x, s, z, 0), _finite, WIDE, falls_back=True),
    # An infinity becomes whatever the processor makes of it as an integer in eager, so none is among the numbers.
    Operator("fake_quantize.channels", _by_channel, _finite, WIDE, falls_back=True),
    Operator("fake_quantize.gradient", _gradient, _finite, FLOATS, falls_back=True),
]  # fmt: skip


def _there(x: Tensor, s: Tensor, z: Tensor) -> Any:
    return (
        decomposed.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8),
        decomposed.quantize_per_channel(x, s, z, 0, -128, 127, torch.int8),
    )


OPERATORS = [
    *THERE_AND_BACK,
    Operator("quantized_decomposed", _single(_there), _finite, (torch.float32,), falls_back=True),
]
