"""Quantisation: numbers as small integers, with a scale and a zero point, and back.

    quantised = clamp(round(x / scale) + zero_point, least, most)          x ~ (quantised - zero_point) * scale

ATen's `fake_quantize` operators go there and back at once and say for the gradient where nothing was cut off. They are
taken apart as PyTorch's own kernels compute them.
"""

from __future__ import annotations

from struct import pack, unpack
from typing import Any

import torch
from torch import Tensor

from compiler.lowering.registry import decomposes

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)


def _there_and_back(
    x: Tensor, scale: Any, inverse: Any, zero_point: Any, low: int, high: int, product: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The numbers, and where they were within the range; in `product` is multiplied by the scale."""
    value = torch.round(_computed(x) * inverse) + zero_point
    # A NaN is above nothing, and becomes the least number.
    bounded = torch.where(value > low, value.clamp(max=high), low)
    return ((bounded - zero_point).to(product) * scale).to(x.dtype), (value >= low) & (value <= high)


def _computed(x: Tensor) -> Tensor:
    return x.float() if x.dtype in HALVES else x


@decomposes(aten.fake_quantize_per_tensor_affine_cachemask)
def fake_quantize(x: Tensor, scale: float, zero_point: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    (rounded,) = unpack("f", pack("f", scale))
    (inverse,) = unpack("f", pack("f", 1.0 / rounded))
    return _there_and_back(x, rounded, inverse, zero_point, low, high, torch.float32)


@decomposes(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams)
def fake_quantize_by_tensors(
    x: Tensor, scale: Tensor, zero_point: Tensor, is_on: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """Scale and zero point are of one element, and so is the switch that turns the whole on."""
    single, whole, switch = (_number(one) for one in (scale.float(), zero_point.to(_computed(x).dtype), is_on != 0))
    result, mask = _there_and_back(x, single, 1.0 / single, whole, low, high, torch.float32)
    return torch.where(switch, result, x), ~switch | mask


@decomposes(aten.fake_quantize_per_channel_affine_cachemask)
def fake_quantize_by_channel(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, low: int, high: int
) -> tuple[Tensor, Tensor]:
    dtype = _computed(x).dtype
    single, whole = _beside(x, scale.float(), axis), _beside(x, zero_point.to(dtype), axis)
    return _there_and_back(x, single, 1.0 / single, whole, low, high, dtype)


def _number(value: Any) -> Any:
    """A tensor of one element as one without dimensions, which takes part in arithmetic like a number."""
    return value.reshape(()) if isinstance(value, Tensor) else value


def _beside(x: Tensor, channels: Tensor, axis: int) -> Tensor:
    """One number for each channel, in a shape that broadcasts against x."""
    return channels.view([channels.shape[0] if dim == axis % x.dim() else 1 for dim in range(x.dim())])
